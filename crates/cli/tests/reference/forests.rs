//! Minimum spanning forests of the reference graphs: their weights and numbers of edges.

use crate::chunks::find_in_chunks;
use crate::command::Workplace;
use crate::data;
use crate::sums::{graphs, json, run_in_ways, storing};

#[test]
fn forests_of_all_graphs_are_right() {
    let Some(data) = data() else { return };
    for (number, name, answers, graph) in graphs(&data) {
        let place = Workplace::new(format!("{name}: mst"));
        let (edges, vertices) = graph.write(place.folder());
        let mut options = vec!["--weights", "f64"];
        options.extend(storing(number));
        options.extend((!answers.directed).then_some("--undirected"));
        place.import(&edges, Some(&vertices), &options);
        let result = run_in_ways(&place, number, "mst", &[]);
        let rows = std::fs::read_to_string(result).expect("a result");
        let direction = (!answers.directed).then_some("--undirected");
        let options: Vec<&str> = ["--weights", "f64"].into_iter().chain(direction).collect();
        find_in_chunks((number, &answers), &place, ("mst", &[]), |chunks| {
            (graph.write(chunks.folder()), options.clone())
        });
        let weights = rows.lines().skip(1).map(|row| {
            let weight = row.rsplit(',').next().expect("a weight");
            weight.parse::<f64>().expect("a number")
        });
        let weights: Vec<f64> = weights.collect();
        let known = json(&data, name);
        let number_at = |at: &str| known.pointer(at).and_then(|number| number.as_f64());
        assert_eq!(
            Some(weights.len() as f64),
            number_at("/msf/edges"),
            "{name}: edges"
        );
        let weight = weights.iter().sum::<f64>();
        assert_eq!(Some(weight), number_at("/msf/weight"), "{name}: weight");
    }
}
