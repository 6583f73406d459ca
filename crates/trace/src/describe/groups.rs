use crate::describe::arrivals::seconds;
use crate::hash::FixedMap;
use crate::row::{Name, Names, Row};
use serde::Serialize;
use std::collections::BTreeMap;

/// One model, class or client.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GroupFigures {
    /// Requests.
    pub n: u64,
    /// Of all requests.
    pub share: f64,
    /// Prompt tokens per request that tells.
    pub mean_input: Option<f64>,
    /// Output tokens per request that tells.
    pub mean_output: Option<f64>,
    /// Requests that failed at the source, where the format tells.
    pub fail_share: Option<f64>,
    /// CV (population) of the gaps between its own arrivals; from three arrivals up.
    pub gap_cv_pop: Option<f64>,
}

/// (model, class, client) of a row.
type Kind = [Option<Name>; 3];

/// Which requests belong together: by model, by class, by client.
#[derive(Default)]
pub(crate) struct Groups {
    kinds: FixedMap<Kind, u32>,
    list: Vec<(Kind, Sums)>,
}

#[derive(Clone, Copy, Default)]
struct Sums {
    n: u64,
    input: (u64, u64),
    output: (u64, u64),
    judged: u64,
    failed: u64,
}

impl Sums {
    fn add(&mut self, other: &Sums) {
        self.n += other.n;
        self.input = (self.input.0 + other.input.0, self.input.1 + other.input.1);
        self.output = (self.output.0 + other.output.0, self.output.1 + other.output.1);
        self.judged += other.judged;
        self.failed += other.failed;
    }
}

/// Requests by model, by class, by client, and by model and class.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the field names are the definitions")]
pub struct Grouped {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, GroupFigures>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub classes: BTreeMap<String, GroupFigures>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub clients: BTreeMap<String, GroupFigures>,
    /// `model|class`: requests.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub model_x_class: BTreeMap<String, u64>,
}

impl Groups {
    /// Counts a row and gives the number of its kind.
    pub(crate) fn row(&mut self, row: &Row) -> u32 {
        let kind = [row.model, row.class, row.client];
        let next = self.list.len() as u32;
        let tag = match (next, self.list.first()) {
            // One kind in the whole trace is the common case.
            (1, Some((only, _))) if *only == kind => 0,
            _ => *self.kinds.entry(kind).or_insert(next),
        };
        if tag == next {
            self.list.push((kind, Sums::default()));
        }
        let sums = &mut self.list[tag as usize].1;
        sums.n += 1;
        if let Some(input) = row.input {
            sums.input = (sums.input.0 + 1, sums.input.1 + u64::from(input));
        }
        if let Some(output) = row.output {
            sums.output = (sums.output.0 + 1, sums.output.1 + u64::from(output));
        }
        if let Some(ok) = row.ok {
            sums.judged += 1;
            sums.failed += u64::from(!ok);
        }
        tag
    }

    /// Whether rows differ in model, class or client at all.
    pub(crate) fn is_one_unnamed(&self) -> bool {
        matches!(self.list.as_slice(), [] | [([None, None, None], _)])
    }

    /// The figures; `arrivals` are (time, kind) ascending.
    pub(crate) fn figures(&self, arrivals: &[(i64, u32)], names: &Names) -> Option<Grouped> {
        if self.is_one_unnamed() {
            return None;
        }
        let mut pairs = BTreeMap::new();
        for ([model, class, _], sums) in &self.list {
            if let (Some(model), Some(class)) = (model, class) {
                *pairs.entry(format!("{}|{}", names.text(*model), names.text(*class))).or_default() += sums.n;
            }
        }
        Some(Grouped {
            models: self.by(0, arrivals, names),
            classes: self.by(1, arrivals, names),
            clients: self.by(2, arrivals, names),
            model_x_class: pairs,
        })
    }

    fn by(&self, part: usize, arrivals: &[(i64, u32)], names: &Names) -> BTreeMap<String, GroupFigures> {
        let mut index: BTreeMap<Name, usize> = BTreeMap::new();
        let mut groups: Vec<(Name, Sums, Gaps)> = Vec::new();
        let mut of_kind: Vec<Option<usize>> = Vec::new();
        for (kind, sums) in &self.list {
            let group = kind[part].map(|name| {
                *index.entry(name).or_insert_with(|| {
                    groups.push((name, Sums::default(), Gaps::default()));
                    groups.len() - 1
                })
            });
            if let Some(group) = group {
                groups[group].1.add(sums);
            }
            of_kind.push(group);
        }
        for &(at, kind) in arrivals {
            if let Some(group) = of_kind[kind as usize] {
                groups[group].2.add(at);
            }
        }
        let total: u64 = self.list.iter().map(|(_, s)| s.n).sum();
        let mean = |(n, sum): (u64, u64)| (n > 0).then(|| sum as f64 / n as f64);
        let figures = |(name, sums, gaps): &(Name, Sums, Gaps)| {
            let figures = GroupFigures {
                n: sums.n,
                share: sums.n as f64 / total as f64,
                mean_input: mean(sums.input),
                mean_output: mean(sums.output),
                fail_share: (sums.judged > 0).then(|| sums.failed as f64 / sums.judged as f64),
                gap_cv_pop: gaps.cv(),
            };
            (names.text(*name).to_owned(), figures)
        };
        groups.iter().map(figures).collect()
    }
}

/// Mean and variance of gaps as they come (Welford).
#[derive(Default)]
struct Gaps {
    last: Option<i64>,
    n: u64,
    mean: f64,
    squares: f64,
}

impl Gaps {
    fn add(&mut self, at: i64) {
        if let Some(last) = self.last {
            let gap = seconds(at - last);
            self.n += 1;
            let off = gap - self.mean;
            self.mean += off / self.n as f64;
            self.squares += off * (gap - self.mean);
        }
        self.last = Some(at);
    }

    fn cv(&self) -> Option<f64> {
        (self.n > 1 && self.mean > 0.0).then(|| libm::sqrt(self.squares / self.n as f64) / self.mean)
    }
}
