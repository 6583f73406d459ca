use tailbound_route::Complaint;

/// What is wrong with a scenario.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ScenarioError {
    /// It isn't TOML of that form.
    #[error("line {line}: {problem}")]
    Form {
        /// Where, from 1.
        line: usize,
        /// What is wrong, and in which key.
        problem: String,
    },
    /// Its policy isn't one.
    #[error("policy: {0}")]
    Policy(#[from] Complaint),
    /// No such profile.
    #[error("engines.profile: no profile `{0}` is known; `tailbound emulate --list-profiles` names them")]
    Profile(String),
    /// Engines that can't be.
    #[error("engines: {0}")]
    Engines(#[from] tailbound_engine::ConfigError),
    /// A value nothing can be done with; the key, and what it must be.
    #[error("{0}")]
    Value(String),
    /// A file that can't be read.
    #[error("{0}")]
    File(String),
    /// So many requests would wait for ever.
    #[error("policy: {0} requests wait and are never sent")]
    Stuck(usize),
    /// Arrivals that are no plan.
    #[error("traffic.{0}.arrivals: {1}")]
    Plan(String, tailbound_workload::SpecError),
    /// A trace that can't be had.
    #[error("traffic.{0}: {1}")]
    Trace(String, String),
}

impl ScenarioError {
    /// A value nothing can be done with.
    pub(crate) fn value(what: impl Into<String>) -> ScenarioError {
        ScenarioError::Value(what.into())
    }

    /// What the TOML reader says, in one line, with the line of the file.
    pub(super) fn form(text: &str, e: &toml::de::Error) -> ScenarioError {
        let at = e.span().map_or(0, |span| span.start.min(text.len()));
        let line = text.as_bytes()[..at].iter().filter(|b| **b == b'\n').count() + 1;
        let key = text.lines().nth(line - 1).and_then(|l| l.split_once('=')).map(|(key, _)| key.trim());
        let message = e.message().lines().collect::<Vec<_>>().join(", ");
        let problem = match key.filter(|_| message.starts_with("invalid")) {
            Some(key) => format!("{key}: {message}"),
            None => message,
        };
        ScenarioError::Form { line, problem }
    }
}
