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

/// Failures grouped by what, where and whose.
#[derive(Default)]
pub(crate) struct Groups(Vec<FailureGroup>);

impl Groups {
    pub(crate) fn add(&mut self, row: &Row) {
        let End::Failed { phase, blame, cause, detail } = &row.end else { return };
        let same = |g: &&mut FailureGroup| g.cause == *cause && g.phase == *phase && g.blame == *blame;
        let Some(group) = self.0.iter_mut().find(same) else {
            let sample = (row.id, detail.clone());
            self.0.push(FailureGroup { cause: *cause, phase: *phase, blame: *blame, count: 1, sample });
            return;
        };
        group.count += 1;
        if row.id < group.sample.0 {
            group.sample = (row.id, detail.clone());
        }
    }

    /// The most frequent first.
    pub(crate) fn finish(mut self) -> Vec<FailureGroup> {
        self.0.sort_by(|a, b| b.count.cmp(&a.count).then(a.sample.0.cmp(&b.sample.0)));
        self.0
    }
}
