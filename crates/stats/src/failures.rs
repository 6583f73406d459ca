use tailbound_record::{Blame, Cause, End, Phase, Row};

/// Failures of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureGroup {
    /// What happened.
    pub cause: Cause,
    /// How far the requests had come.
    pub phase: Phase,
    /// Whose side it was.
    pub blame: Blame,
    /// How many.
    pub count: usize,
    /// The first one's id and its own words.
    pub sample: (u64, Box<str>),
}

/// Failures grouped by what, where and whose, the most frequent first.
pub(crate) fn group(rows: &[Row]) -> Vec<FailureGroup> {
    let mut groups: Vec<FailureGroup> = Vec::new();
    for row in rows {
        let End::Failed { phase, blame, cause, detail } = &row.end else { continue };
        let same = |g: &&mut FailureGroup| g.cause == *cause && g.phase == *phase && g.blame == *blame;
        match groups.iter_mut().find(same) {
            Some(group) => {
                group.count += 1;
                if row.id < group.sample.0 {
                    group.sample = (row.id, detail.clone());
                }
            }
            None => groups.push(FailureGroup {
                cause: *cause,
                phase: *phase,
                blame: *blame,
                count: 1,
                sample: (row.id, detail.clone()),
            }),
        }
    }
    groups.sort_by(|a, b| b.count.cmp(&a.count).then(a.sample.0.cmp(&b.sample.0)));
    groups
}
