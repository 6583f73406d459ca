use tailbound_clock::Time;
use tailbound_record::Why;

/// Which planned request: its index in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IntentId(pub u32);

/// What a driver tells the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadEvent {
    /// `next_wake` has come.
    Wake,
    /// A request that was sent has ended, in whatever way.
    Ended {
        /// Which one.
        id: IntentId,
        /// Whether the whole answer came.
        ok: bool,
        /// How many output tokens it had (0 if unknown).
        answer_tokens: u32,
    },
    /// Send nothing more. Requests in flight go on.
    Stop(Why),
}

/// What the load tells its driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadEffect {
    /// Send this request at `due` exactly (it may be handed over a little ahead of time; the pacer owns exactness).
    Send {
        /// Which one.
        id: IntentId,
        /// When it should have started by the plan; earlier than `due` if it had to wait for a place under the cap.
        scheduled: Time,
        /// When to send it.
        due: Time,
    },
    /// Nothing is in flight and nothing more will be sent.
    Finished,
}
