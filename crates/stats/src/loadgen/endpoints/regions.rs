//! The concurrency regions of a curve and the points it needs.

use serde::Serialize;

/// The highest concurrency of the Ultra Low region.
pub const ULTRA_LOW_MAX: u64 = 32;

/// The regions between the lowest and the highest concurrency; ranges include both ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Regions {
    /// The lowest concurrency of the curve.
    pub c_min: u64,
    /// The highest concurrency the system supports.
    pub c_max: u64,
    /// "Ultra Low Concurrency" in prose.
    pub low_latency: [u64; 2],
    /// Low.
    pub low_concurrency: [u64; 2],
    /// Medium.
    pub med_concurrency: [u64; 2],
    /// High.
    pub high_concurrency: [u64; 2],
    /// Up to 10 % over the highest: allowed, but in no region.
    pub margin: [u64; 2],
}

/// A region by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // as in [`Regions`]
pub enum Region {
    LowLatency,
    LowConcurrency,
    MedConcurrency,
    HighConcurrency,
    Margin,
}

impl Region {
    /// The four that a curve must cover.
    pub const MANDATORY: [Region; 4] =
        [Region::LowLatency, Region::LowConcurrency, Region::MedConcurrency, Region::HighConcurrency];

    /// As `point.yaml` spells it.
    pub fn name(self) -> &'static str {
        match self {
            Region::LowLatency => "low_latency",
            Region::LowConcurrency => "low_concurrency",
            Region::MedConcurrency => "med_concurrency",
            Region::HighConcurrency => "high_concurrency",
            Region::Margin => "margin",
        }
    }
}

/// Why there are no regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRegions {
    /// Too little concurrency for a curve.
    #[error("the maximum supported concurrency is {0}, but a curve needs more than {ULTRA_LOW_MAX}")]
    MaxTooLow(u64),
    /// The lowest is not low enough, or zero.
    #[error("the lowest concurrency is {c_min}: it must lie between 1 and {ULTRA_LOW_MAX}")]
    MinOutOfRange {
        /// What it was.
        c_min: u64,
    },
}

impl Regions {
    /// The regions for these ends: equal steps of log₂ of the distance from the lowest, rounded half to even.
    ///
    /// # Errors
    /// If an end is out of its range.
    pub fn of(c_max: u64, c_min: u64) -> Result<Regions, NoRegions> {
        if c_max <= ULTRA_LOW_MAX {
            return Err(NoRegions::MaxTooLow(c_max));
        }
        if c_min == 0 || c_min > ULTRA_LOW_MAX {
            return Err(NoRegions::MinOutOfRange { c_min });
        }
        let step = libm::log2((c_max - c_min) as f64) / 3.0;
        let end = |steps: f64| libm::rint(c_min as f64 + libm::exp2(step * steps)) as u64;
        let (low, med) = (end(1.0), end(2.0));
        Ok(Regions {
            c_min,
            c_max,
            low_latency: [1, c_min],
            low_concurrency: [c_min + 1, low],
            med_concurrency: [low + 1, med],
            high_concurrency: [med + 1, c_max],
            // In floating point, as the official table: 1.1 × 100 is a little over 110.
            margin: [c_max + 1, libm::ceil(1.10 * c_max as f64) as u64],
        })
    }

    /// The region of a concurrency; `None` beyond the margin (and for 0).
    pub fn place(&self, concurrency: u64) -> Option<Region> {
        [Region::LowLatency, Region::LowConcurrency, Region::MedConcurrency, Region::HighConcurrency, Region::Margin]
            .into_iter()
            .find(|&r| {
                let [low, high] = self.range(r);
                (low..=high).contains(&concurrency)
            })
    }

    /// The ends of a region.
    pub fn range(&self, region: Region) -> [u64; 2] {
        match region {
            Region::LowLatency => self.low_latency,
            Region::LowConcurrency => self.low_concurrency,
            Region::MedConcurrency => self.med_concurrency,
            Region::HighConcurrency => self.high_concurrency,
            Region::Margin => self.margin,
        }
    }
}
