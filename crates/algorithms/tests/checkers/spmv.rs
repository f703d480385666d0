//! Products of the matrix of a graph and a vector.

use graphmill_algorithms::spmv::check::check_product;

#[test]
fn product_check_refuses_wrong_values() {
    let arcs = [
        (0, 1, 0.1),
        (0, 2, 0.2),
        (0, 2, 0.3),
        (2, 0, -4.0),
        (1, 1, 2.0),
    ];
    let value = |v: u64| (v + 1) as f64;
    let rows = [0.1 * 2.0 + 0.2 * 3.0 + 0.3 * 3.0, 4.0, -4.0];
    let columns = [-12.0, 0.1 + 4.0, 0.2 + 0.3];
    for (is_transposed, right) in [(false, rows), (true, columns)] {
        let check = |found: &[f64]| check_product(3, &arcs, value, is_transposed, found);
        assert_eq!(check(&right), Ok(()));
        for vertex in 0..3 {
            let mut wrong = right;
            wrong[vertex] *= 1.0 + 1e-12;
            assert!(check(&wrong).is_err(), "{wrong:?}");
        }
        assert!(check(&right[..2]).is_err());
    }
}
