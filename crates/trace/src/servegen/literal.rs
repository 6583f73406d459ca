/// A Python dict of numbers, `{224: 0.000315, 225.0: 7.9e-05}`, as pairs. `Err` is the byte where it stops being one.
pub(super) fn dict(text: &str) -> Result<Vec<(f64, f64)>, usize> {
    let inner = text.trim().strip_prefix('{').and_then(|t| t.strip_suffix('}')).ok_or(0usize)?;
    let mut pairs = Vec::new();
    let mut at = text.find('{').unwrap_or(0) + 1;
    for item in inner.split(',') {
        let is_last_blank = item.trim().is_empty() && at + item.len() + 1 >= text.trim_end().len();
        if !is_last_blank {
            let (key, value) = item.split_once(':').ok_or(at)?;
            let number = |t: &str| t.trim().parse::<f64>().ok().filter(|x| x.is_finite()).ok_or(at);
            pairs.push((number(key)?, number(value)?));
        }
        at += item.len() + 1;
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::dict;

    #[test]
    fn dicts_of_numbers_and_nothing_else() {
        assert_eq!(dict("{}"), Ok(vec![]));
        assert_eq!(dict(" {224: 0.000315, 0.5: 7.9e-05,} "), Ok(vec![(224.0, 0.000315), (0.5, 7.9e-05)]));
        assert_eq!(dict("{1: 2, x: 3}"), Err(6));
        assert_eq!(dict("{1: 2,, 3: 4}"), Err(6));
        assert_eq!(dict("__import__('os')"), Err(0));
        assert_eq!(dict("{1: inf}"), Err(1));
    }
}
