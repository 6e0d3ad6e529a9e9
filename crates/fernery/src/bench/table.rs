//! Figures as people read them: one row each, as they are measured.

use super::Figure;

/// What stands over the columns.
pub(super) fn head() -> String {
    row(["FIGURE", "VALUE", "UNIT", "RATIO", "TARGET", "RESULT"])
}

/// One figure. The name of the database is left out: it stands above.
pub(super) fn line(figure: &Figure<'_>) -> String {
    let name = figure.figure.split_once('.').filter(|(of, _)| matches!(*of, "sqlite" | "postgres"));
    let name = name.map_or(figure.figure.as_str(), |(_, name)| name);
    let ratio = figure.ratio.map_or(String::new(), number);
    let result = match figure.reached {
        None => "",
        Some(true) => "ok",
        Some(false) => "missed",
    };
    let target = figure.target.as_deref().unwrap_or_default();
    row([name, &number(figure.value), figure.unit, &ratio, target, result])
}

fn row([name, value, unit, ratio, target, result]: [&str; 6]) -> String {
    format!("{name:26}  {value:>10}  {unit:11}  {ratio:>6}  {target:8}  {result}").trim_end().to_string()
}

/// A number with as many digits as say something.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_one_row_of_80_columns() {
        let figure = Figure {
            figure: "postgres.approve_to_start_flatness".into(),
            value: 123_456.7,
            unit: "connections",
            against: Some("raw.cycle_100"),
            ratio: Some(0.4567),
            target: Some(">= 0.45".into()),
            reached: Some(false),
        };
        let shown = line(&figure);
        assert_eq!(shown, "approve_to_start_flatness       123457  connections   0.457  >= 0.45   missed");
        assert!(shown.len() <= 80 && head().len() <= 80);
        assert_eq!([number(3.0), number(1.5), number(0.25)], ["3", "1.50", "0.250"]);
    }
}
