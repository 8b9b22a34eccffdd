//! Lost chunks in terms of others. Source: \[X\] H. P. Anvin, The mathematics of RAID-6.
//!
//! Chunks of a stripe go by their roles: data from 0 on, then P, their sum, then Q, the sum of 2^i times chunk i.

use flashyard_service::parity::{CHUNKS_MAX, inverse, power, product};

/// Factors of all roles whose sum is the data of role `wanted`, if those in `missing` are not there; nothing where too many are.
pub(crate) fn factors(data: u8, parities: u8, missing: u32, wanted: u8) -> Option<[u8; CHUNKS_MAX]> {
    let is_missing = |role: u8| missing >> role & 1 == 1;
    let (p, q) = (data, data + 1);
    let (has_p, has_q) = (!is_missing(p), parities > 1 && !is_missing(q));
    let lost: u32 = (0..data).filter(|&role| is_missing(role)).map(|role| 1 << role).sum();
    let others = lost & !(1 << wanted);
    // Shares of P and Q with what they have of the data that is there.
    let (of_p, of_q) = match others.count_ones() {
        0 if has_p => (1, 0),
        0 if has_q => (0, inverse(power(wanted))),
        1 if has_p && has_q => {
            let other = others.trailing_zeros() as u8;
            let of_q = inverse(power(wanted) ^ power(other));
            (product(of_q, power(other)), of_q)
        }
        _ => return None,
    };
    let mut factors = [0; CHUNKS_MAX];
    for role in (0..data).filter(|&role| !is_missing(role) && role != wanted) {
        factors[usize::from(role)] = of_p ^ product(of_q, power(role));
    }
    factors[usize::from(p)] = of_p;
    if parities > 1 {
        factors[usize::from(q)] = of_q;
    }
    Some(factors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_loss_up_to_the_parities_is_made_up_for() {
        for parities in 1..=2_u8 {
            for data in 1..=12_u8 {
                let mut stripe: Vec<u8> = (0..data).map(|role| role.wrapping_mul(83) ^ 0x5a).collect();
                stripe.push(stripe.iter().fold(0, |sum, &byte| sum ^ byte));
                let sum = |sum: u8, (role, &byte): (usize, &u8)| sum ^ product(byte, power(role as u8));
                stripe.push(stripe[..usize::from(data)].iter().enumerate().fold(0, sum));
                for missing in 0_u32..1 << (data + parities) {
                    for wanted in (0..data).filter(|&role| missing >> role & 1 == 1) {
                        let factors = factors(data, parities, missing, wanted);
                        if missing.count_ones() > u32::from(parities) {
                            continue;
                        }
                        let factors = factors.expect("few enough are missing");
                        let terms = factors.iter().zip(&stripe).enumerate();
                        let made = terms.fold(0, |sum, (role, (&factor, &byte))| {
                            assert!(factor == 0 || missing >> role & 1 == 0, "role {role} is missing");
                            sum ^ product(factor, byte)
                        });
                        assert_eq!(made, stripe[usize::from(wanted)], "{missing:b} of {data} and {parities}");
                    }
                }
            }
        }
        assert_eq!(factors(3, 1, 0b11, 0), None);
        assert_eq!(factors(3, 2, 0b10011, 0), None, "Q and two chunks");
    }
}
