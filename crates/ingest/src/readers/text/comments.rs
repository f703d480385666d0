//! Recognizes lines that look like comments.

use super::record::{MARK, is_blank};

/// The mark that a comment starts with.
pub(super) fn mark(line: &[u8]) -> Option<&'static [u8]> {
    [&b"#"[..], b"%", b"//"]
        .into_iter()
        .find(|mark| line.starts_with(mark))
}

/// A mark and a blank.
pub(super) fn is_spaced_comment(line: &[u8]) -> bool {
    mark(line).is_some_and(|mark| line.get(mark.len()).is_some_and(|&after| is_blank(after)))
}

/// A mark that no id follows at once: a blank, the end of the line, another mark, or a slash.
pub(super) fn is_surely_comment(line: &[u8]) -> bool {
    mark(line).is_some_and(|mark| {
        line.get(mark.len())
            .is_none_or(|&after| is_blank(after) || matches!(after, b'#' | b'%' | b'!' | b'/'))
    })
}

/// Text after a byte-order mark.
pub(super) fn past_mark(line: &[u8]) -> &[u8] {
    line.strip_prefix(MARK).unwrap_or(line)
}
