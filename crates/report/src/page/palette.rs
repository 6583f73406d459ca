//! Colours. Five series that stay apart for every kind of colour vision; each series has a dash of its own besides.

/// On white.
const LIGHT: [&str; 5] = ["#0072b2", "#e85e71", "#721d4a", "#a58609", "#ad0aff"];
/// On the dark ground.
const DARK: [&str; 5] = ["#56b4e9", "#7d51f6", "#df280c", "#bc4e6b", "#ebdb00"];

/// Ground, raised ground, text, softer text, rules, links, warning, passed, failed.
const LIGHT_PAGE: [&str; 9] =
    ["#ffffff", "#f4f6f8", "#16191d", "#505a64", "#cfd6dd", "#005a9c", "#8a4b00", "#1a6b2d", "#a8101d"];
const DARK_PAGE: [&str; 9] =
    ["#111418", "#1b2026", "#e8ecf0", "#a7b1bb", "#39424c", "#7cc4ff", "#ffb454", "#6fd98a", "#ff8a8a"];
const PAGE_NAMES: [&str; 9] = ["ground", "raised", "ink", "soft", "rule", "link", "warn", "good", "bad"];

/// How much of its colour an area has, on white and on the dark ground, where the same share is fainter.
const VEIL: (&str, &str) = (".28", ".46");
/// The same of the outer of two areas.
const HAZE: (&str, &str) = (".13", ".2");

/// How many series have a colour of their own.
pub(super) const SERIES: usize = LIGHT.len();

/// Dashes of the series: the second channel.
pub(super) const DASHES: [&str; 5] = ["", "7 3", "2 3", "9 3 2 3", "4 2"];

/// The variables of both schemes: what the system asks for, unless the page's own switch says otherwise.
pub(super) fn css() -> String {
    let (light, dark) = (variables(&LIGHT_PAGE, &LIGHT, VEIL.0, HAZE.0), variables(&DARK_PAGE, &DARK, VEIL.1, HAZE.1));
    format!(
        ":root{{{light}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n\
         @media screen{{:root[data-theme=light]{{{light}}}:root[data-theme=dark]{{{dark}}}}}\n"
    )
}

/// The light scheme by the names of its variables.
pub(super) fn light() -> Vec<(String, &'static str)> {
    let page = PAGE_NAMES.iter().map(|name| (*name).to_owned()).zip(LIGHT_PAGE);
    page.chain((1..).map(|i| format!("s{i}")).zip(LIGHT))
        .chain([("veil".to_owned(), VEIL.0), ("haze".to_owned(), HAZE.0)])
        .collect()
}

fn variables(page: &[&str; 9], series: &[&str; 5], veil: &str, haze: &str) -> String {
    let page = PAGE_NAMES.iter().zip(page).map(|(name, colour)| format!("--{name}:{colour};"));
    let series = series.iter().enumerate().map(|(i, colour)| format!("--s{}:{colour};", i + 1));
    page.chain(series).chain([format!("--veil:{veil};--haze:{haze};")]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    type Rgb = [f64; 3];

    /// Simulated dichromacy on linear RGB: Machado, Oliveira and Fernandes (2009), severity 1.
    const VISION: [[Rgb; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [[0.152_286, 1.052_583, -0.204_868], [0.114_503, 0.786_281, 0.099_216], [-0.003_882, -0.048_116, 1.051_998]],
        [[0.367_322, 0.860_646, -0.227_968], [0.280_085, 0.672_501, 0.047_413], [-0.011_820, 0.042_940, 0.968_881]],
        [[1.255_528, -0.076_749, -0.178_779], [-0.078_411, 0.930_809, 0.147_602], [0.004_733, 0.691_367, 0.303_900]],
    ];

    fn linear(hex: &str) -> Rgb {
        [1, 3, 5].map(|i| {
            let c = f64::from(u8::from_str_radix(&hex[i..i + 2], 16).unwrap()) / 255.0;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        })
    }

    fn seen(rgb: Rgb, vision: &[Rgb; 3]) -> Rgb {
        vision.map(|row| (0..3).map(|k| row[k] * rgb[k]).sum::<f64>().clamp(0.0, 1.0))
    }

    fn lab([r, g, b]: Rgb) -> Rgb {
        let f = |t: f64| if t > 216.0 / 24389.0 { t.cbrt() } else { (24389.0 / 27.0 * t + 16.0) / 116.0 };
        let x = f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047);
        let y = f(luminance([r, g, b]));
        let z = f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883);
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    fn luminance([r, g, b]: Rgb) -> f64 {
        0.2126 * r + 0.7152 * g + 0.0722 * b
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(linear(a)), luminance(linear(b)));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn series_stay_apart_for_every_kind_of_colour_vision() {
        for (series, ground) in [(LIGHT, LIGHT_PAGE[0]), (DARK, DARK_PAGE[0])] {
            for (i, a) in series.iter().enumerate() {
                assert!(contrast(a, ground) >= 3.0, "{a} on {ground}: {}", contrast(a, ground));
                for b in &series[..i] {
                    for vision in &VISION {
                        let (a, b) = (lab(seen(linear(a), vision)), lab(seen(linear(b), vision)));
                        let apart = (0..3).map(|k| (a[k] - b[k]).powi(2)).sum::<f64>().sqrt();
                        assert!(apart >= 20.0, "{a:?} {b:?}: {apart}");
                    }
                }
            }
        }
    }

    #[test]
    fn text_can_be_read() {
        for page in [LIGHT_PAGE, DARK_PAGE] {
            for ground in [page[0], page[1]] {
                for text in [page[2], page[3], page[5], page[6], page[7], page[8]] {
                    assert!(contrast(text, ground) >= 4.5, "{text} on {ground}: {}", contrast(text, ground));
                }
            }
        }
    }
}
