//! What is on trial: bits in, bits out. Put yours here.

pub type Implementation = fn(&[u64]) -> u64;

/// What implements a file, if anything does; a wrong one if wanted.
pub fn implementation(file: &str, wrong: bool) -> Option<Implementation> {
    Some(match (file, wrong) {
        ("casts/cast-f32-bf16", false) => |x| match f32(x[0]).is_nan() {
            true => 0x7fc0,
            false => (x[0] + 0x7fff + (x[0] >> 16 & 1)) >> 16,
        },
        ("casts/cast-f32-bf16", true) => |x| x[0] >> 16,
        ("functions/log1p-f32", false) => |x| bits((f32(x[0]) as f64).ln_1p()),
        ("functions/log1p-f32", true) => |x| bits(((1.0 + f32(x[0])) as f64).ln()),
        _ => return None,
    })
}

fn f32(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

/// A result that was computed in f64, rounded to f32.
fn bits(x: f64) -> u64 {
    (x as f32).to_bits() as u64
}
