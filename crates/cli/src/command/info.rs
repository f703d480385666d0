//! `graphmill info`: what a stored graph holds, for people or as JSON.

use std::io::Write;

use graphmill::{CancelToken, EdgeKind, GraphInfo, IdKind, Layout, Machine, Order};

use crate::args::stored::InfoArgs;
use crate::exit_code::DONE;
use crate::size;

pub(crate) fn run(args: InfoArgs, stop: &CancelToken) -> anyhow::Result<u8> {
    let info = Machine::with_one_thread(stop)?.info(&args.graph)?;
    if args.json {
        return super::print_json(serde_json::to_string_pretty(&info));
    }
    let mut out = std::io::stdout().lock();
    let mut line = |what: &str, text: String| writeln!(out, "{what:<16}{}", printable(&text));
    line("vertices", size::grouped(info.vertices))?;
    if let Some(edges) = info.edge_vertices {
        let direction = if edges.directed {
            "directed"
        } else {
            "undirected"
        };
        let text = format!(
            "{} of the vertices, of {direction} edges",
            size::grouped(edges.count)
        );
        line("edge vertices", text)?;
    }
    line("arcs", size::grouped(info.arcs))?;
    line("input edges", size::grouped(info.input_edges))?;
    for (reason, count) in info.dropped.iter().filter(|(_, count)| **count > 0) {
        let (count, reason) = (size::grouped(*count), reason.replace('_', " "));
        line("dropped", format!("{count} {reason}"))?;
    }
    let direction = match info.directed {
        true => "directed",
        false => "undirected: each edge is two arcs",
    };
    line("direction", direction.to_string())?;
    let weights = match info.edge {
        EdgeKind::None | EdgeKind::Record(_) => "none",
        EdgeKind::F32 => "32-bit floats",
        EdgeKind::F64 => "64-bit floats",
    };
    if info.edge.is_record() {
        line("edge data", printable(&info.edge_fields.to_string()))?;
    }
    let range = info.weights.map(|range| format!(", {range}"));
    line("weights", weights.to_string() + &range.unwrap_or_default())?;
    line("vertex ids", ids_text(&info))?;
    let order = match info.order {
        Order::Id => "by id",
        Order::Degree => "by degree, most arcs first in every batch",
    };
    line("order", order.to_string())?;
    let layout = match info.layout {
        Layout::Column => "columns",
        Layout::Stream => "stream, unsorted chunks",
    };
    line("layout", layout.to_string())?;
    if let (Some(chunks), Some(bytes)) = (info.chunks, info.chunk_bytes) {
        let chunks = size::grouped(chunks);
        line(
            "chunks",
            format!("{chunks}, of {} at most", size::text(bytes)),
        )?;
    }
    line("batches", size::grouped(info.batches))?;
    let transposed = match info.reverse {
        true => "stored too",
        false => "not stored",
    };
    line("transposed", transposed.to_string())?;
    let mut on_disk = size::text(info.disk_bytes);
    // Without arcs the figure says nothing.
    if info.arcs > 0 {
        on_disk += &format!(", {:.2} bytes an arc", info.bytes_per_arc);
    }
    line("on disk", on_disk)?;
    let parts = [
        ("blocks", info.block_bytes),
        ("indices", info.index_bytes),
        (
            if info.edge.is_record() {
                "edge data"
            } else {
                "weights"
            },
            info.weight_bytes,
        ),
    ];
    for (part, bytes) in parts {
        line("", format!("{} of {part}", size::text(bytes)))?;
    }
    for read in &info.read {
        line("read", read.clone())?;
    }
    let format = format!("{}, written by {}", info.format, info.program);
    line("format", format)?;
    Ok(DONE)
}

/// A text of a file, which may have been written to do something to a terminal.
fn printable(text: &str) -> String {
    let mut printable = String::new();
    for character in text.chars() {
        match character.is_control() {
            true => printable.extend(character.escape_default()),
            false => printable.push(character),
        }
    }
    printable
}

/// Says what the ids are.
fn ids_text(info: &GraphInfo) -> String {
    let ids = match info.ids {
        IdKind::Dense => "integers 0, 1, 2, ...",
        IdKind::Integer => "integers",
        IdKind::Signed => "integers, some negative",
        IdKind::Text => "text",
        IdKind::Uuid => "UUIDs",
    };
    let id_type = match info.ids {
        IdKind::Text | IdKind::Uuid => String::new(),
        _ => format!(" ({})", info.id_type.name()),
    };
    ids.to_string() + &id_type
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_printed_as_escapes() {
        assert_eq!(printable("a\u{1b}[2J\rb\u{9b}ü"), r"a\u{1b}[2J\rb\u{9b}ü");
    }
}
