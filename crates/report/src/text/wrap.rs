/// Columns of a line.
pub(super) const WIDTH: usize = 80;

/// Appends `text` after `lead`, broken at blanks to fit the width; further lines begin with `indent`.
pub(crate) fn paragraph(out: &mut String, lead: &str, indent: &str, text: &str) {
    out.push_str(lead);
    let mut column = lead.chars().count();
    let mut fresh = true;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        let blank = usize::from(!fresh);
        if !fresh && column + blank + length > WIDTH {
            out.push('\n');
            out.push_str(indent);
            column = indent.chars().count();
        } else if !fresh {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
        fresh = false;
    }
    out.push('\n');
}
