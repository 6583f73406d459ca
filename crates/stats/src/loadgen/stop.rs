//! The ways in which issuing ends, in LoadGen's words.

/// Why issuing ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Every generated query was issued (Server and accuracy runs).
    AllIssued,
    /// Enough queries and time.
    Naturally,
    /// More queries outstanding than allowed.
    TooManyOutstanding {
        /// Issued so far.
        issued: u64,
        /// Of them not done.
        outstanding: u64,
    },
    /// `max_query_count`.
    MaxQueries(u64),
    /// `max_duration`, after that many ns.
    MaxDuration(u64),
    /// Too few queries were generated.
    RanOut,
    /// From outside.
    Interrupted,
}

impl Stop {
    /// LoadGen's line about it, and whether it is an error.
    pub fn message(self) -> Option<(bool, String)> {
        match self {
            Stop::AllIssued => None,
            Stop::Naturally => Some((false, "Ending naturally: Minimum query count and test duration met.".into())),
            Stop::TooManyOutstanding { issued, outstanding } => Some((
                true,
                format!(
                    "IssueQueryThread 0 Ending early: Too many outstanding queries. issued {issued} outstanding {outstanding}"
                ),
            )),
            Stop::MaxQueries(n) => {
                Some((true, format!("IssueQueryThread 0 Ending early: Max query count reached. query_count {n}")))
            }
            Stop::MaxDuration(ns) => {
                Some((true, format!("IssueQueryThread 0 Ending early: Max test duration reached. duration_ns {ns}")))
            }
            Stop::RanOut => Some((
                true,
                "Ending early: Ran out of generated queries to issue before the minimum query count and test duration \
                 were reached. Please update the relevant expected latency or target qps in the TestSettings so they \
                 are more accurate."
                    .into(),
            )),
            Stop::Interrupted => Some((true, "Ending early: the run was interrupted.".into())),
        }
    }
}
