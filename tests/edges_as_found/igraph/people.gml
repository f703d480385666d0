Creator "igraph version 1.0.0 Wed Nov 25 17:35:48 2026"
Version 1
graph
[
  directed 0
  node
  [
    id 0
    name "alice"
  ]
  node
  [
    id 1
    name "bob"
  ]
  node
  [
    id 2
    name "carol"
  ]
  node
  [
    id 3
    name "dave"
  ]
  node
  [
    id 4
    name "erin"
  ]
  edge
  [
    source 1
    target 0
    weight 0.5
  ]
  edge
  [
    source 2
    target 1
    weight 0.25
  ]
  edge
  [
    source 4
    target 3
    weight 1
  ]
]
