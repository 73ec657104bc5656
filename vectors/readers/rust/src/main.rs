//! Golden vectors in Rust, with serde: `cargo run -- [--wrong] FILE.json ...` says what is wrong.

mod mine;

use serde::Deserialize;
use serde_json::{from_slice, Value};
use std::{collections::BTreeMap, error::Error, process::ExitCode};

/// The fields of operations and functions that are used here; others are skipped.
#[derive(Deserialize)]
struct Case {
    id: String,
    inputs: Vec<String>,
    allowed: Vec<[String; 2]>,
    unspecified: Vec<[String; 2]>,
    exact: Option<Exact>,
    flags: Vec<String>,
    kills: Vec<String>,
    note: Option<String>,
}

#[derive(Deserialize)]
#[rustfmt::skip]
struct Exact { kind: String, negative: bool, significand: String, exponent: i64 }

fn hex(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("a bit pattern of up to 64 bits")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Distance from the exact result in units of 2^-32 ulp, in a format of up to 32 bits with IEEE's infinities.
fn error(exact: &Exact, format: &Value, got: u64) -> Option<i128> {
    let [width, exponent_bits, fraction_bits, bias] =
        ["width", "exponent_bits", "fraction_bits", "bias"].map(|name| format[name].as_i64().unwrap());
    let field = (got >> fraction_bits) as i64 & ((1 << exponent_bits) - 1);
    let significand = i128::from(got & ((1 << fraction_bits) - 1) | u64::from(field > 0) << fraction_bits);
    let shift = (field.max(1) - bias - fraction_bits - exact.exponent).clamp(-99, 99);
    let scaled = if shift > 0 { significand << shift } else { significand >> -shift };
    let sign = if (got >> (width - 1) == 1) == exact.negative { 1 } else { -1 };
    let distance = (scaled - sign * i128::from(hex(&exact.significand))).abs();
    (exact.kind == "number" && field < (1 << exponent_bits) - 1).then_some(distance)
}

fn off(distance: Option<i128>, most: &str) -> String {
    distance.map_or("".into(), |d| format!(", {most}{}.{:03} ulp off", d >> 32, ((d & 0xffff_ffff) * 1000) >> 32))
}

/// Runs all cases of a file; prints the first five failures and a summary. Counts allowed, forbidden and unspecified.
fn judge(data: &Value, cases: &[&Value], implementation: mine::Implementation) -> Result<[usize; 3], Box<dyn Error>> {
    let (mut count, mut worst) = ([0; 3], None);
    let format = &data["formats"][text(&data["operation"]["result"])];
    let digits = format["width"].as_u64().unwrap_or_default().div_ceil(4) as usize;
    for case in cases {
        let case = Case::deserialize(*case)?;
        let got = implementation(&case.inputs.iter().map(|bits| hex(bits)).collect::<Vec<_>>());
        let within = |ranges: &[[String; 2]]| ranges.iter().any(|[low, high]| hex(low) <= got && got <= hex(high));
        let verdict = if within(&case.allowed) { 0 } else { 1 + usize::from(within(&case.unspecified)) };
        let distance = case.exact.as_ref().and_then(|exact| error(exact, format, got));
        (count[verdict], worst) = (count[verdict] + 1, worst.max(distance));
        if verdict == 1 && count[1] <= 5 {
            let range = |[low, high]: &[String; 2]| if low == high { low.clone() } else { format!("{low}..{high}") };
            let allowed = case.allowed.iter().map(range).collect::<Vec<_>>().join(" ");
            let (inputs, off) = (case.inputs.join(" "), off(distance, ""));
            println!("{} {inputs} gives 0x{got:0digits$x}{off}, allowed: {allowed}", case.id);
            case.flags.iter().for_each(|flag| println!("    {}", text(&data["flags"][flag])));
            case.kills.iter().for_each(|name| println!("    suspect {name}"));
            case.note.iter().for_each(|note| println!("    {note}"));
        }
    }
    let ([allowed, forbidden, unspecified], off) = (count, off(worst, "at most "));
    println!("{}: {allowed} allowed, {forbidden} forbidden, {unspecified} unspecified{off}", text(&data["name"]));
    Ok(count)
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let (options, paths): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|argument| argument == "--wrong");
    let (mut total, mut not_run) = ([0; 3], BTreeMap::<String, usize>::new());
    for path in paths {
        let bytes = std::fs::read(&path).map_err(|error| format!("{path}: {error}"))?;
        let data: Value = from_slice(&bytes).map_err(|error| format!("{path}: {error}"))?;
        let groups = data["groups"].as_array().into_iter().flatten();
        let cases: Vec<_> = groups.flat_map(|group| group["cases"].as_array().into_iter().flatten()).collect();
        if data["format"] != "halfulp-vectors-1" || data["count"] != cases.len() {
            return Err(format!("{path}: no halfulp-vectors-1 file, or not all of it").into());
        }
        if let Some(implementation) = mine::implementation(text(&data["name"]), !options.is_empty()) {
            let count = judge(&data, &cases, implementation)?;
            total = [0, 1, 2].map(|i| total[i] + count[i]);
        } else {
            *not_run.entry(text(&data["kind"]).to_string()).or_default() += cases.len();
        }
    }
    not_run.iter().for_each(|(kind, cases)| println!("not run: {cases} cases of kind {kind}"));
    let ([allowed, forbidden, unspecified], left) = (total, not_run.values().sum::<usize>());
    println!("all: {allowed} allowed, {forbidden} forbidden, {unspecified} unspecified, {left} not run");
    Ok(if allowed > 0 && forbidden == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
