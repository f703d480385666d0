//! The checkers accept the known answers, by methods of their own, and refuse them as soon as one value is off.

use graphmill_algorithms::{bfs, cdlp, pagerank, scc, sssp, wcc};

use crate::answers::Answers;
use crate::graphs::Graph;

pub(crate) fn check(name: &str, graph: &Graph, answers: &Answers) {
    let vertices = answers.vertices;
    let weighted = graph.arcs();
    let arcs: Vec<(u64, u64)> = weighted.iter().map(|arc| (arc.0, arc.1)).collect();
    let edges = if graph.directed {
        arcs.len()
    } else {
        arcs.iter().filter(|arc| arc.0 <= arc.1).count()
    };
    assert_eq!(edges as u64, answers.edges, "{name}: distinct edges");
    assert_eq!(arcs.len() as u64, answers.arcs, "{name}: arcs");
    let some_vertices = || (0..vertices as usize).step_by(1 + vertices as usize / 3);

    if let Some(depths) = &answers.depths.depths {
        let judge = |depths: &[Option<u64>]| {
            bfs::check::check_depths(vertices, &arcs, answers.source, depths)
        };
        assert_eq!(judge(depths), Ok(()), "{name}: depths");
        for vertex in some_vertices() {
            let mut wrong = depths.clone();
            wrong[vertex] = depths[vertex].map_or(Some(3), |depth| depth.checked_sub(1));
            assert!(
                judge(&wrong).is_err(),
                "{name}: depths but for vertex {vertex}"
            );
        }
    }
    if let Some(labels) = &answers.components.labels {
        let judge = |labels: &[u64]| wcc::check::check_components(vertices, &arcs, labels);
        assert_eq!(judge(labels), Ok(()), "{name}: components");
        for vertex in some_vertices() {
            let mut wrong = labels.clone();
            wrong[vertex] += 1;
            assert!(
                judge(&wrong).is_err(),
                "{name}: components but for vertex {vertex}"
            );
        }
    }
    if let Some(labels) = answers
        .strong
        .as_ref()
        .and_then(|known| known.labels.as_ref())
    {
        let judge = |labels: &[u64]| scc::check::check_strong(vertices, &arcs, labels);
        assert_eq!(judge(labels), Ok(()), "{name}: strong components");
        for vertex in some_vertices() {
            let mut wrong = labels.clone();
            wrong[vertex] += 1;
            assert!(
                judge(&wrong).is_err(),
                "{name}: strong components but for vertex {vertex}"
            );
        }
    }
    if let Some(labels) = &answers.communities.labels {
        let symmetric = !graph.directed;
        let judge =
            |labels: &[u64]| cdlp::check::check_labels(vertices, &arcs, symmetric, 10, labels);
        assert_eq!(judge(labels), Ok(()), "{name}: communities");
        for vertex in some_vertices() {
            let mut wrong = labels.clone();
            wrong[vertex] += 1;
            assert!(
                judge(&wrong).is_err(),
                "{name}: communities but for vertex {vertex}"
            );
        }
    }
    if let Some(distances) = &answers.distances.distances {
        let judge = |distances: &[Option<f64>]| {
            sssp::check::check_distances(vertices, &weighted, answers.source, distances)
        };
        assert_eq!(judge(distances), Ok(()), "{name}: distances");
        for vertex in some_vertices() {
            let mut wrong = distances.clone();
            wrong[vertex] =
                distances[vertex].map_or(Some(3.0), |distance| Some(distance.next_up()));
            assert!(
                judge(&wrong).is_err(),
                "{name}: distances but for vertex {vertex}"
            );
        }
    }
    let plain = pagerank::check::Equation::default();
    if let Some(ranks) = &answers.ranks.after_20 {
        let judge = |ranks: &[f64]| {
            pagerank::check::check_iterations(vertices, &arcs, plain, 20, ranks, 1e-10)
        };
        assert_eq!(judge(ranks), Ok(()), "{name}: ranks after 20 iterations");
        for vertex in some_vertices() {
            let mut wrong = ranks.clone();
            wrong[vertex] *= 1.0 + 1e-9;
            assert!(
                judge(&wrong).is_err(),
                "{name}: ranks but for vertex {vertex}"
            );
        }
    }
    if let Some((ranks, precision)) = &answers.ranks.converged {
        let judge = |ranks: &[f64]| {
            pagerank::check::check_fixed_point(vertices, &arcs, plain, ranks, precision / 2.0)
        };
        assert_eq!(judge(ranks), Ok(()), "{name}: converged ranks");
        let mut wrong = ranks.clone();
        wrong[answers.ranks.top[0].0 as usize] *= 1.01;
        assert!(judge(&wrong).is_err(), "{name}: ranks but for the greatest");
    }
}
