//! Scripts of random calls of edge, vertex, message and ask passes, run by the engine and by hand.

use std::marker::PhantomData;

use graphmill_engine::{
    Accumulator, Activate, ActiveSet, ApplyTo, AskProgram, Direction, Engine, EngineError,
    MessageProgram, ProgramFootprint, Reduce,
};
use graphmill_storage::SplitMix64;

use crate::common::{Edge, Plain, all, run};
use crate::random_programs::ask_programs::Questions;
use crate::random_programs::edge_programs::{
    Add, Arrays, AsInteger, Compose, Letters, Long, Lower, PlainRows, Scripted, Short, Wide,
};
use crate::random_programs::{
    for_seeds, in_buckets, mix, one_of, random_graph, random_mode, with_stored,
};

/// One call of a script.
#[derive(Clone, Copy, Debug)]
enum Call {
    Select {
        seed: u64,
        of: u64,
    },
    Insert {
        vertex: u64,
    },
    Touch {
        seed: u64,
        of_all: bool,
    },
    Edges {
        program: u64,
        seed: u64,
        of_all: bool,
        direction: Direction,
        then: SetChange,
    },
    Letters {
        seed: u64,
        of_all: bool,
    },
    Questions {
        seed: u64,
        of_all: bool,
    },
}

impl Call {
    /// Takes another program in place of one whose fold has an order.
    fn lose_order(&mut self) {
        if let Call::Edges { program, .. } = self {
            *program = match *program {
                0..3 => 3 + *program,
                weight @ 3..8 => weight,
                record => record / 8 * 8 + 5 + record % 3,
            };
        }
    }
}

/// What becomes of the active set after a pass.
#[derive(Clone, Copy, Debug)]
enum SetChange {
    Replace,
    Union,
    Remove,
}

/// Draws calls; `kind` says what the edges of the graph carry: a weight (0), or records.
fn random_script(random: &mut SplitMix64, vertices: u64, kind: u64) -> Vec<Call> {
    let length = 2 + random.below(9);
    (0..length)
        .map(|_| {
            let (seed, of_all) = (random.next_u64(), random.below(3) == 0);
            match random.below(11) {
                0 | 1 => Call::Select {
                    seed,
                    of: 1 + random.below(40),
                },
                2 => Call::Insert {
                    vertex: random.below(vertices),
                },
                3 => Call::Touch { seed, of_all },
                4 => Call::Letters { seed, of_all },
                5 => Call::Questions { seed, of_all },
                _ => Call::Edges {
                    program: 8 * kind + random.below(8),
                    seed,
                    of_all,
                    direction: one_of(random, [Direction::Forward, Direction::Backward]),
                    then: one_of(
                        random,
                        [
                            SetChange::Replace,
                            SetChange::Replace,
                            SetChange::Union,
                            SetChange::Remove,
                        ],
                    ),
                },
            }
        })
        .collect()
}

/// The rows after a script; what each call returned, and the size of the active set after it.
#[derive(Clone, Debug, Default, PartialEq)]
struct Outcome {
    rows: PlainRows,
    returned: Vec<Vec<u8>>,
}

fn bytes_of(sum: impl Reduce, active: u64) -> Vec<u8> {
    let mut bytes = active.to_le_bytes().to_vec();
    sum.put(&mut bytes);
    bytes
}

/// Returns the rows that a vertex begins with.
fn first_rows(v: u64) -> (u64, u32, [u64; 4]) {
    (mix(v), mix(v) as u32 % 1000, [v, mix(v), 0, v * v])
}

/// How a script's edge passes are run.
trait Passes {
    fn edges<P: Scripted>(
        &mut self,
        program: &P,
        of_all: bool,
        direction: Direction,
        then: SetChange,
    ) -> Result<(), EngineError>;
}

/// Runs the edge pass of a call by the program of its number.
fn edge_pass(
    passes: &mut impl Passes,
    number: u64,
    seed: u64,
    (of_all, direction, then): (bool, Direction, SetChange),
) -> Result<(), EngineError> {
    let edge = PhantomData;
    match number {
        0 => passes.edges(
            &Compose::<(), false> { seed, edge },
            of_all,
            direction,
            then,
        ),
        1 => {
            let edge = PhantomData;
            passes.edges(
                &Compose::<f32, true> { seed, edge },
                of_all,
                direction,
                then,
            )
        }
        2 => {
            let edge = PhantomData;
            passes.edges(
                &Compose::<f64, false> { seed, edge },
                of_all,
                direction,
                then,
            )
        }
        3 | 4 => {
            let edge = PhantomData::<f32>;
            passes.edges(&Add { seed, edge }, of_all, direction, then)
        }
        5 | 6 => passes.edges(&Lower { seed }, of_all, direction, then),
        7 => passes.edges(&Wide { seed }, of_all, direction, then),
        8..16 => record_pass::<Short>(passes, number, seed, (of_all, direction, then)),
        _ => record_pass::<Long>(passes, number, seed, (of_all, direction, then)),
    }
}

/// Runs the edge pass of a call over edges that carry records.
fn record_pass<R: AsInteger>(
    passes: &mut impl Passes,
    number: u64,
    seed: u64,
    (of_all, direction, then): (bool, Direction, SetChange),
) -> Result<(), EngineError> {
    let edge = PhantomData::<R>;
    match number % 8 {
        0 => {
            let edge = PhantomData::<()>;
            let program = Compose::<(), false> { seed, edge };
            passes.edges(&program, of_all, direction, then)
        }
        1 | 2 => passes.edges(&Compose::<R, true> { seed, edge }, of_all, direction, then),
        3 | 4 => passes.edges(&Compose::<R, false> { seed, edge }, of_all, direction, then),
        5 | 6 => passes.edges(&Add { seed, edge }, of_all, direction, then),
        _ => passes.edges(&Lower { seed }, of_all, direction, then),
    }
}

fn footprint() -> ProgramFootprint {
    ProgramFootprint::of::<Compose<f64, false>>()
        .or(ProgramFootprint::of::<Add<f32>>())
        .or(ProgramFootprint::of::<Add<Long>>())
        .or(ProgramFootprint::of::<Lower>())
        .or(ProgramFootprint::of::<Wide>())
        .with_rows::<<Letters as MessageProgram>::ApplyRows>()
        .with_rows::<<Questions as AskProgram>::TakeRows>()
}

/// The engine's side of a script.
struct ByEngine<'e> {
    engine: &'e mut Engine,
    arrays: Arrays,
    active: ActiveSet,
    returned: Vec<Vec<u8>>,
}

impl ByEngine<'_> {
    fn note(&mut self, sum: impl Reduce) {
        self.returned.push(bytes_of(sum, self.active.len()));
    }

    fn call(&mut self, call: Call) -> Result<(), EngineError> {
        let Arrays { a, b, .. } = self.arrays;
        match call {
            Call::Select { seed, of } => {
                self.active =
                    self.engine
                        .select_vertices((a.read(), b.read()), None, |v, (a, b)| {
                            is_selected(seed, of, v, *a, *b)
                        })?;
                self.note(());
            }
            Call::Insert { vertex } => {
                self.active.insert(vertex)?;
                self.note(());
            }
            Call::Touch { seed, of_all } => {
                let active = (!of_all).then_some(&self.active);
                let rows = (a.write(), b.write());
                let sum = self
                    .engine
                    .process_vertices(rows, active, |v, (a, b)| touch(seed, v, a, b))?;
                self.note(sum);
            }
            Call::Letters { seed, of_all } => {
                let vertices = self.engine.vertices();
                let active = (!of_all).then_some(&self.active);
                let (sum, [mut senders, reached]) = self.engine.process_messages(
                    &Letters { seed, vertices },
                    a.read(),
                    (a.write(), b.write()),
                    active,
                )?;
                senders.union(&reached)?;
                self.active = senders;
                self.note(sum);
            }
            Call::Questions { seed, of_all } => {
                let vertices = self.engine.vertices();
                let active = (!of_all).then_some(&self.active);
                let (sum, next) = self.engine.process_asks(
                    &Questions { seed, vertices },
                    a.read(),
                    (a.read(), b.read()),
                    (a.write(), b.write()),
                    active,
                )?;
                self.active = next;
                self.note(sum);
            }
            Call::Edges {
                program,
                seed,
                of_all,
                direction,
                then,
            } => {
                edge_pass(self, program, seed, (of_all, direction, then))?;
            }
        }
        Ok(())
    }
}

impl Passes for ByEngine<'_> {
    fn edges<P: Scripted>(
        &mut self,
        program: &P,
        of_all: bool,
        direction: Direction,
        then: SetChange,
    ) -> Result<(), EngineError> {
        let full = of_all.then(|| self.engine.full_set()).transpose()?;
        let (signal, apply) = P::rows(self.arrays);
        let active = full.as_ref().unwrap_or(&self.active);
        let (sum, next) = self
            .engine
            .process_edges(program, signal, apply, active, direction)?;
        match then {
            SetChange::Replace => self.active = next,
            SetChange::Union => self.active.union(&next)?,
            SetChange::Remove => self.active.remove(&next)?,
        }
        self.note(sum);
        Ok(())
    }
}

/// The simulator's side of a script: every call goes over all vertices or arcs.
struct ByHand<'g> {
    arcs: &'g [Edge],
    rows: PlainRows,
    active: Vec<bool>,
    returned: Vec<Vec<u8>>,
}

impl<'g> ByHand<'g> {
    fn new(graph: &'g Plain) -> Self {
        let mut rows = PlainRows::default();
        for v in 0..graph.vertices {
            let (a, b, wide) = first_rows(v);
            rows.a.push(a);
            rows.b.push(b);
            rows.wide.push(wide);
            rows.degrees.push(0);
        }
        for arc in &graph.arcs {
            rows.degrees[arc.0 as usize] += 1;
        }
        ByHand {
            arcs: &graph.arcs,
            rows,
            active: vec![false; graph.vertices as usize],
            returned: Vec::new(),
        }
    }

    fn note(&mut self, sum: impl Reduce) {
        let active = self.active.iter().filter(|is_active| **is_active).count();
        self.returned.push(bytes_of(sum, active as u64));
    }

    fn call(&mut self, call: Call) -> Result<(), EngineError> {
        let vertices = self.active.len();
        match call {
            Call::Select { seed, of } => {
                for v in 0..vertices {
                    let (a, b) = (self.rows.a[v], self.rows.b[v]);
                    self.active[v] = is_selected(seed, of, v as u64, a, b);
                }
                self.note(());
            }
            Call::Insert { vertex } => {
                self.active[vertex as usize] = true;
                self.note(());
            }
            Call::Touch { seed, of_all } => {
                let mut sum = 0_u64;
                for v in (0..vertices).filter(|v| of_all || self.active[*v]) {
                    let (a, b) = (&mut self.rows.a[v], &mut self.rows.b[v]);
                    sum = sum.wrapping_add(touch(seed, v as u64, a, b));
                }
                self.note(sum);
            }
            Call::Letters { seed, of_all } => self.letters(seed, of_all),
            Call::Questions { seed, of_all } => self.questions(seed, of_all),
            Call::Edges {
                program,
                seed,
                of_all,
                direction,
                then,
            } => {
                edge_pass(self, program, seed, (of_all, direction, then))?;
            }
        }
        Ok(())
    }

    fn letters(&mut self, seed: u64, of_all: bool) {
        let vertices = self.active.len();
        let program = Letters {
            seed,
            vertices: vertices as u64,
        };
        let mut functions = vec![Letters::IDENTITY; vertices];
        let (mut sum, mut next) = (0_u64, vec![false; vertices]);
        for v in (0..vertices).filter(|v| of_all || self.active[*v]) {
            let (summand, is_active) = program.plain(v as u64, self.rows.a[v], |to, message| {
                program.fold(&mut functions[to as usize], Letters::function(message));
            });
            sum = sum.wrapping_add(summand);
            next[v] = is_active;
        }
        for (v, function) in functions.into_iter().enumerate() {
            if function != Letters::IDENTITY {
                let rows = (&mut self.rows.a[v], &mut self.rows.b[v]);
                let (summand, activate) = program.apply(v as u64, rows, function);
                sum = sum.wrapping_add(summand);
                next[v] |= activate == Activate::Yes;
            }
        }
        self.active = next;
        self.note(sum);
    }

    fn questions(&mut self, seed: u64, of_all: bool) {
        let vertices = self.active.len();
        let program = Questions {
            seed,
            vertices: vertices as u64,
        };
        let answers: Vec<_> = (0..vertices)
            .map(|v| {
                let asks = of_all || self.active[v];
                let asked = asks.then(|| program.ask(v as u64, &self.rows.a[v]))??;
                let rows = (&self.rows.a[asked as usize], &self.rows.b[asked as usize]);
                Some(program.answer(asked, rows))
            })
            .collect();
        let (mut sum, mut next) = (0_u64, vec![false; vertices]);
        for (v, answer) in answers.into_iter().enumerate() {
            if let Some(answer) = answer {
                let rows = (&mut self.rows.a[v], &mut self.rows.b[v]);
                let (summand, activate) = program.take(v as u64, rows, answer);
                sum = sum.wrapping_add(summand);
                next[v] = activate == Activate::Yes;
            }
        }
        self.active = next;
        self.note(sum);
    }
}

impl Passes for ByHand<'_> {
    fn edges<P: Scripted>(
        &mut self,
        program: &P,
        of_all: bool,
        direction: Direction,
        then: SetChange,
    ) -> Result<(), EngineError> {
        let vertices = self.active.len();
        let mut arcs: Vec<Edge> = match direction {
            Direction::Forward => self.arcs.to_vec(),
            Direction::Backward => self.arcs.iter().map(|&(s, d, w)| (d, s, w)).collect(),
        };
        arcs.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)));
        let messages: Vec<_> = (0..vertices)
            .map(|v| {
                let signals = of_all || self.active[v];
                signals
                    .then(|| program.signal_plain(v as u64, &self.rows))
                    .flatten()
            })
            .collect();
        let mut accumulators = vec![P::IDENTITY; vertices];
        for (source, destination, weight) in arcs {
            if let Some(message) = messages[source as usize] {
                let carried = program.on_edge(message, P::Edge::of_weight(weight));
                program.fold(&mut accumulators[destination as usize], carried);
            }
        }
        let (mut sum, mut next) = (P::Sum::ZERO, vec![false; vertices]);
        for (v, accumulator) in accumulators.into_iter().enumerate() {
            if P::APPLY_TO == ApplyTo::All || !accumulator.bit_eq(&P::IDENTITY) {
                let (summand, activate) =
                    program.apply_plain(v as u64, &mut self.rows, accumulator);
                sum.add(summand);
                next[v] = activate == Activate::Yes;
            }
        }
        for (is_active, next) in self.active.iter_mut().zip(next) {
            *is_active = match then {
                SetChange::Replace => next,
                SetChange::Union => *is_active || next,
                SetChange::Remove => *is_active && !next,
            };
        }
        self.note(sum);
        Ok(())
    }
}

fn is_selected(seed: u64, of: u64, v: u64, a: u64, b: u32) -> bool {
    mix(seed ^ v ^ a ^ u64::from(b)).is_multiple_of(of)
}

fn touch(seed: u64, v: u64, a: &mut u64, b: &mut u32) -> u64 {
    *a = mix(*a ^ seed ^ v);
    *b = b.rotate_left(7) ^ (seed as u32);
    *a
}

fn check(seed: u64) {
    let mut random = SplitMix64::new(seed);
    let mut graph = random_graph(&mut random);
    let kind = [0, 0, 1, 2][random.below(4) as usize];
    graph.records = [None, Short::RECORDS, Long::RECORDS][kind];
    let mut script = random_script(&mut random, graph.vertices, kind as u64);
    let mode = in_buckets(seed, random_mode(&mut random, footprint()));
    if mode.buckets.is_some() {
        script.iter_mut().for_each(Call::lose_order);
    }
    let mut by_hand = ByHand::new(&graph);
    for call in &script {
        by_hand.call(*call).unwrap();
    }
    by_hand.rows.degrees.clear();
    let expected = Outcome {
        rows: by_hand.rows,
        returned: by_hand.returned,
    };
    with_stored(&graph, &mut random, mode.buckets.is_some(), |path| {
        let found = run(path, mode, |engine| {
            let arrays = Arrays {
                a: engine.vertex_array("a")?,
                b: engine.vertex_array("b")?,
                wide: engine.vertex_array("wide")?,
            };
            let rows = (arrays.a.write(), arrays.b.write(), arrays.wide.write());
            engine.process_vertices(rows, None, |v, (a, b, wide)| {
                (*a, *b, *wide) = first_rows(v);
            })?;
            let active = engine.empty_set()?;
            let mut by_engine = ByEngine {
                engine,
                arrays,
                active,
                returned: Vec::new(),
            };
            for call in &script {
                by_engine.call(*call)?;
            }
            let ByEngine {
                engine, returned, ..
            } = by_engine;
            let rows = PlainRows {
                a: all(engine, arrays.a),
                b: all(engine, arrays.b),
                wide: all(engine, arrays.wide),
                degrees: Vec::new(),
            };
            Ok(Outcome { rows, returned })
        });
        for (i, call) in script.iter().enumerate() {
            assert_eq!(
                found.returned[i], expected.returned[i],
                "seed {seed}: call {i}, {call:?}; {mode:?}"
            );
        }
        assert!(
            found.rows == expected.rows,
            "seed {seed}: rows after {script:?}; {mode:?}"
        );
    });
}

#[test]
fn random_scripts_equal_a_naive_simulation() {
    for_seeds(60, check);
}
