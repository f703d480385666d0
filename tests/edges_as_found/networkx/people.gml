graph [
  node [
    id 0
    label "alice"
  ]
  node [
    id 1
    label "bob"
  ]
  node [
    id 2
    label "carol"
  ]
  node [
    id 3
    label "dave"
  ]
  node [
    id 4
    label "erin"
  ]
  edge [
    source 0
    target 1
    weight 0.5
  ]
  edge [
    source 1
    target 2
    weight 0.25
  ]
  edge [
    source 3
    target 4
    weight 1.0
  ]
]
