//! Two results, figure by figure.

use serde::Serialize;
use serde_json::Value;

/// A figure that differs. What one side doesn't have is null.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Its place in the result: `tailbound.latency.ttft_s.max`.
    pub figure: String,
    /// As it was published.
    pub published: Value,
    /// As it follows from the rows.
    pub by_the_rows: Value,
}

/// Not figures of the run: they tell when it was, by the local clock of whoever looks, and by whom it was summed up.
const BESIDE: [&str; 3] = ["date", "timestamp", "version"];

/// What differs, in the order of the published result, and how many figures were compared. What the published result doesn't have is no
/// published figure: a later version may know more.
pub fn differences(published: &Value, again: &Value) -> (Vec<Difference>, usize) {
    let (mut found, mut n) = (Vec::new(), 0);
    walk("", published, again, &mut found, &mut n);
    (found, n)
}

fn walk(at: &str, published: &Value, again: &Value, found: &mut Vec<Difference>, n: &mut usize) {
    match (published, again) {
        (Value::Object(a), Value::Object(b)) => {
            let inside = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
            for (name, value) in a.iter().filter(|(name, _)| !BESIDE.contains(&name.as_str())) {
                walk(&inside(name), value, b.get(name).unwrap_or(&Value::Null), found, n);
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            for i in 0..a.len().max(b.len()) {
                walk(
                    &format!("{at}[{i}]"),
                    a.get(i).unwrap_or(&Value::Null),
                    b.get(i).unwrap_or(&Value::Null),
                    found,
                    n,
                );
            }
        }
        _ => {
            *n += 1;
            if published != again {
                found.push(Difference {
                    figure: at.to_owned(),
                    published: published.clone(),
                    by_the_rows: again.clone(),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_difference_is_named_by_its_place() {
        let a = json!({"n": 3, "date": "x", "ttft": {"p": [1.0, 2.0]}, "gone": 1});
        let b = json!({"n": 3, "date": "y", "ttft": {"p": [1.0, 2.5]}, "new": 1});
        let (found, n) = differences(&a, &b);
        let names: Vec<&str> = found.iter().map(|d| d.figure.as_str()).collect();
        assert_eq!((names, n), (vec!["ttft.p[1]", "gone"], 4));
        assert_eq!(differences(&a, &a), (Vec::new(), 4));
    }
}
