//! The options of an algorithm, made from its entry in the registry.

use std::collections::BTreeMap;

use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches};
use graphmill::{OptionKind, OptionSpec};

/// An option of an algorithm on the command line.
pub(super) fn option_arg(option: &'static OptionSpec, help: &str) -> clap::Arg {
    let help = match option.default {
        Some(default) => format!("{help} [default: {default}]"),
        None => help.to_string(),
    };
    let arg = clap::Arg::new(option.name).long(option.name).help(help);
    let name = option.value_name;
    match option.kind {
        OptionKind::Flag => arg.action(ArgAction::SetTrue),
        // The id of a vertex may begin with a dash.
        OptionKind::Vertex | OptionKind::Vertices => arg.value_name(name).allow_hyphen_values(true),
        OptionKind::VertexSet | OptionKind::VertexValues | OptionKind::VertexProbabilities => {
            arg.value_name(name).value_hint(clap::ValueHint::FilePath)
        }
        OptionKind::Value => arg.value_name(name).allow_negative_numbers(true),
    }
}

/// Returns the options that were given, by name.
pub(super) fn given_options<'s>(
    options: impl IntoIterator<Item = &'s OptionSpec>,
    matches: &ArgMatches,
) -> BTreeMap<String, String> {
    let mut given = BTreeMap::new();
    for option in options {
        if matches.value_source(option.name) != Some(ValueSource::CommandLine) {
            continue;
        }
        let value = match option.kind {
            OptionKind::Flag => Some("true".to_string()),
            _ => matches.get_one::<String>(option.name).cloned(),
        };
        given.extend(value.map(|value| (option.name.to_string(), value)));
    }
    given
}
