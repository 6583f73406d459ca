//! The flags of `sweep plot` and `sweep plot_pareto`: vLLM's, and what SVG needs.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Curves of a sweep.
#[derive(Args, Debug)]
pub struct PlotArgs {
    /// Folder of an experiment
    #[arg(value_name = "EXPERIMENT_DIR")]
    pub experiment_dir: PathBuf,
    /// Folder for the figures, within the experiment's
    #[arg(long, value_name = "DIR")]
    pub fig_dir: Option<PathBuf>,
    /// A figure for each combination of these variables
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub fig_by: Vec<String>,
    /// A row of plots for each
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub row_by: Vec<String>,
    /// A column of plots for each
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub col_by: Vec<String>,
    /// A curve for each
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub curve_by: Vec<String>,
    /// Across
    #[arg(long, value_name = "KEY", default_value = "total_token_throughput")]
    pub var_x: String,
    /// Up
    #[arg(long, value_name = "KEY", default_value = "median_ttft_ms")]
    pub var_y: String,
    /// Take only runs for which all of these hold: `max_concurrency<1000,quantization==fp8` (== != <= >= < >)
    #[arg(long, value_name = "LIST", default_value = "", hide_default_value = true)]
    pub filter_by: String,
    /// Take values of a variable together: `request_throughput%1` counts it in whole steps of 1
    #[arg(long, value_name = "LIST", default_value = "", hide_default_value = true)]
    pub bin_by: String,
    /// Scale across
    #[arg(long, value_enum, default_value_t = ScaleName::Linear)]
    pub scale_x: ScaleName,
    /// Scale up
    #[arg(long, value_enum, default_value_t = ScaleName::Linear)]
    pub scale_y: ScaleName,
    /// First part of the figures' names
    #[arg(long, value_name = "NAME", default_value = "FIGURE")]
    pub fig_name: String,
    /// No bars of one standard deviation
    #[arg(long)]
    pub no_error_bars: bool,
    /// Accepted for compatibility: SVG has no height of its own
    #[arg(long, value_name = "INCHES", hide_short_help = true)]
    pub fig_height: Option<f64>,
    /// Accepted for compatibility: SVG has no dots
    #[arg(long, value_name = "DPI", hide_short_help = true)]
    pub fig_dpi: Option<u32>,
    /// Tell which figures there would be, and draw none
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleName {
    Linear,
    Log,
}

/// Speed for a user against speed for an accelerator.
#[derive(Args, Debug)]
pub struct ParetoArgs {
    /// Folder of an experiment
    #[arg(value_name = "EXPERIMENT_DIR")]
    pub experiment_dir: PathBuf,
    /// How fast a user gets tokens: the median of each request's own speed, or vLLM's quotient of throughput and user count
    #[arg(long, value_enum, default_value_t = PerUser::Request)]
    pub per_user: PerUser,
    /// With --per-user quotient: the variable that holds the number of users
    #[arg(long, value_name = "KEY", default_value = "max_concurrency")]
    pub user_count_var: String,
    /// The variable that holds the number of accelerators [default: num_gpus, gpu_count, or tp·pp·dp]
    #[arg(long, value_name = "KEY")]
    pub gpu_count_var: Option<String>,
    /// The number of accelerators, of every run
    #[arg(long, value_name = "N", conflicts_with = "gpu_count_var")]
    pub accelerators: Option<f64>,
    /// What an accelerator costs for an hour: gives the cost of a million output tokens
    #[arg(long, value_name = "PRICE")]
    pub cost_per_accelerator_hour: Option<f64>,
    /// What to write beside the points of the frontier
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "max_concurrency,gpu_count")]
    pub label_by: Vec<String>,
    /// Tell which figure there would be, and draw none
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum PerUser {
    Request,
    Quotient,
}
