//! What a page carries beside what it shows: for the script, and to be downloaded.

use super::html::Html;
use base64::Engine;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

/// A file inside the page.
#[derive(Clone, Debug, PartialEq)]
pub struct Attachment {
    id: String,
    name: String,
    media: &'static str,
    /// Names and values of attributes for the script.
    data: Vec<(&'static str, String)>,
    /// Safe inside a script element: no `<`.
    body: String,
}

impl Attachment {
    /// A JSON text, to be downloaded under a name.
    pub fn json(id: &str, name: &str, text: String) -> Attachment {
        // The same text to every JSON parser, and no end of a script element.
        let body = text.replace('<', "\\u003c");
        Attachment { id: id.into(), name: name.into(), media: "application/json", data: Vec::new(), body }
    }

    pub(super) fn html(&self, html: &mut Html) {
        html.raw("<script type=\"").raw(self.media).raw("\" id=\"").attribute(&self.id).raw("\" data-name=\"");
        html.attribute(&self.name).raw("\"");
        for (name, value) in &self.data {
            html.raw(" data-").raw(name).raw("=\"").attribute(value).raw("\"");
        }
        html.raw(">").raw(&self.body).raw("</script>\n");
    }
}

/// Columns of whole numbers, packed: each as its values' four bytes, lowest first, all first bytes together, then all second ones, and
/// so on (which compresses well); gzip over all columns; base64. A value is stored as itself plus one, so that 0 says there is none.
#[derive(Clone, Debug)]
pub struct Packed {
    n: usize,
    columns: Vec<String>,
    bytes: Vec<u8>,
}

impl Packed {
    /// For so many rows.
    pub fn new(n: usize) -> Packed {
        Packed { n, columns: Vec::new(), bytes: Vec::new() }
    }

    /// A column; values from 2³² − 2 on are stored as that.
    pub fn column(&mut self, name: &str, values: impl Iterator<Item = Option<u64>>) {
        let values: Vec<u32> = values.map(|v| v.map_or(0, |v| v.min(u64::from(u32::MAX) - 1) as u32 + 1)).collect();
        debug_assert_eq!(values.len(), self.n, "a column for every row");
        self.columns.push(name.to_owned());
        for byte in 0..4 {
            self.bytes.extend(values.iter().map(|v| v.to_le_bytes()[byte]));
        }
    }

    /// A column that never falls: stored as its steps from row to row. Rows without a value keep the last one's place.
    pub fn rising(&mut self, name: &str, values: impl Iterator<Item = Option<u64>>) {
        let mut last = 0;
        let steps: Vec<Option<u64>> = values
            .map(|value| {
                let value = value?;
                let step = value.saturating_sub(last);
                last = last.max(value);
                Some(step)
            })
            .collect();
        self.column(&format!("+{name}"), steps.into_iter());
    }

    /// The attachment; `words` are what the numbers of a column `outcome` stand for.
    pub fn finish(self, id: &str, name: &str, words: &[String], left_out: usize) -> Attachment {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        let packed = gzip.write_all(&self.bytes).and_then(|()| gzip.finish());
        let packed = packed.expect("writing to memory does not fail");
        let data = vec![
            ("n", self.n.to_string()),
            ("columns", self.columns.join(" ")),
            ("words", words.join("|")),
            ("left-out", left_out.to_string()),
        ];
        Attachment {
            id: id.into(),
            name: name.into(),
            media: "application/octet-stream",
            data,
            body: base64::engine::general_purpose::STANDARD.encode(packed),
        }
    }
}
