//! `graphmill algorithms`: the registry, for people or as JSON.

use std::io::Write;

use graphmill::OptionKind;
use serde_json::{json, to_string_pretty};

use crate::args::tools::AlgorithmsArgs;
use crate::exit_code::DONE;

pub(crate) fn run(args: AlgorithmsArgs) -> anyhow::Result<u8> {
    if args.json {
        let algorithms = graphmill::algorithms().iter().map(|algorithm| {
            let options = algorithm.options.iter().map(|option| {
                json!({
                    "name": option.name,
                    "value": option.value_name,
                    "kind": match option.kind {
                        OptionKind::Value => "value",
                        OptionKind::Flag => "flag",
                        OptionKind::Vertex => "vertex",
                        OptionKind::Vertices => "vertices",
                        OptionKind::VertexSet => "vertex-set",
                        OptionKind::VertexValues => "vertex-values",
                        OptionKind::VertexProbabilities => "vertex-probabilities",
                    },
                    "required": option.required,
                    "default": option.default,
                    "help": option.help,
                })
            });
            json!({
                "name": algorithm.name,
                "summary": algorithm.summary,
                "value": algorithm.value,
                "options": options.collect::<Vec<_>>(),
            })
        });
        return super::print_json(to_string_pretty(&algorithms.collect::<Vec<_>>()));
    }
    let mut out = std::io::stdout().lock();
    for algorithm in graphmill::algorithms() {
        writeln!(out, "{}: {}", algorithm.name, algorithm.summary)?;
        for option in algorithm.options {
            let value = match option.kind {
                OptionKind::Flag => String::new(),
                _ => format!(" <{}>", option.value_name),
            };
            let note = match option.default {
                Some(default) => format!(" [default: {default}]"),
                None if option.required => " [required]".to_string(),
                None => String::new(),
            };
            let flag = format!("--{}{value}", option.name);
            writeln!(out, "  {flag:<32} {}{note}", option.help)?;
        }
        writeln!(out)?;
    }
    Ok(DONE)
}
