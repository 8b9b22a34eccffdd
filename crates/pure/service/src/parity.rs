//! Arithmetic of parity: bytes as numbers of GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1, as RAID-6 has them. Source: \[X\]
//! H. P. Anvin, The mathematics of RAID-6.
//!
//! There are no tables: loops over bytes become vector instructions, and `pulp` chooses the widest that the processor has, AVX-512 included. Results
//! depend on none of it.

use pulp::{Arch, Simd, WithSimd};

/// The polynomial without its highest bit.
const POLYNOMIAL: u8 = 0x1d;
/// Bytes that [`encode`] works on at once: they stay in registers while all chunks are added.
const STRIP: usize = 128;
/// Chunks of a stripe at most.
pub const CHUNKS_MAX: usize = 32;

/// Twice a number.
#[inline(always)]
const fn doubled(byte: u8) -> u8 {
    let carry = (byte as i8 >> 7) as u8;
    (byte << 1) ^ (carry & POLYNOMIAL)
}

/// `to = scale * to + factor * from`, byte by byte. Bytes of the longer one stay as they are.
pub fn mix(to: &mut [u8], scale: u8, from: &[u8], factor: u8) {
    let count = to.len().min(from.len());
    let (to, from) = (&mut to[..count], &from[..count]);
    if (scale, factor) == (0, 1) {
        return to.copy_from_slice(from);
    }
    Arch::new().dispatch(Mixing { to, scale, from, factor });
}

/// A task of [`mix`]. It is no closure: the function that calls a closure stays a function of its own, for the oldest processors.
struct Mixing<'a> {
    to: &'a mut [u8],
    scale: u8,
    from: &'a [u8],
    factor: u8,
}

impl WithSimd for Mixing<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { to, scale, from, factor } = self;
        let (strips, rest) = to.as_chunks_mut::<STRIP>();
        let (others, other_rest) = from.as_chunks::<STRIP>();
        for (to, from) in strips.iter_mut().zip(others) {
            combine(to, scale, from, factor);
        }
        for (to, from) in rest.as_chunks_mut::<1>().0.iter_mut().zip(other_rest.as_chunks::<1>().0) {
            combine(to, scale, from, factor);
        }
    }
}

#[inline(always)]
fn combine<const N: usize>(to: &mut [u8; N], scale: u8, from: &[u8; N], factor: u8) {
    *to = match (scale, factor) {
        (1, 1) => xor(*to, from),
        (0, _) => all_times(from, factor),
        (1, _) => xor(*to, &all_times(from, factor)),
        _ => xor(all_times(to, scale), &all_times(from, factor)),
    };
}

#[inline(always)]
fn xor<const N: usize>(mut one: [u8; N], other: &[u8; N]) -> [u8; N] {
    one.iter_mut().zip(other).for_each(|(one, other)| *one ^= other);
    one
}

/// Numbers times another one, all bits of the factor at once for each of them.
#[inline(always)]
fn all_times<const N: usize>(bytes: &[u8; N], factor: u8) -> [u8; N] {
    let mut products = [0; N];
    for bit in (0..8).rev() {
        let has_bit = 0_u8.wrapping_sub(factor >> bit & 1);
        products.iter_mut().zip(bytes).for_each(|(product, byte)| *product = doubled(*product) ^ (byte & has_bit));
    }
    products
}

/// Makes the parities of a stripe whose chunks of `chunk_bytes` lie behind each other: `data` are the places of its data, and those of
/// `parities` become the sum of all, and the sum of 2^i times chunk i if there are two.
///
/// # Panics
/// When a place is behind the last chunk or named twice, or with no data, more than [`CHUNKS_MAX`] chunks, or other than 1 or 2 parities.
pub fn encode(chunks: &mut [u8], chunk_bytes: usize, data: &[u8], parities: &[u8]) {
    let mut places: [Option<&mut [u8]>; CHUNKS_MAX] = [const { None }; CHUNKS_MAX];
    for (place, chunk) in places.iter_mut().zip(chunks.chunks_exact_mut(chunk_bytes)) {
        *place = Some(chunk);
    }
    let mut take = |place: u8| places[usize::from(place)].take().expect("a chunk is named once");
    assert!((1..=2).contains(&parities.len()), "{} parities", parities.len());
    let p = take(parities[0]);
    let q = parities.get(1).map_or(Default::default(), |&place| take(place));
    let mut sources: [&[u8]; CHUNKS_MAX] = [&[]; CHUNKS_MAX];
    for (source, &place) in sources.iter_mut().zip(data) {
        *source = take(place);
    }
    syndromes(&sources[..data.len()], p, q);
}

/// The sum of all sources into `p`, and into `q`, if that has any bytes, the sum of 2^i times source i.
fn syndromes(sources: &[&[u8]], p: &mut [u8], q: &mut [u8]) {
    Arch::new().dispatch(Syndromes { sources, p, q });
}

/// A task of [`syndromes`].
struct Syndromes<'a> {
    sources: &'a [&'a [u8]],
    p: &'a mut [u8],
    q: &'a mut [u8],
}

impl WithSimd for Syndromes<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { sources, p, q } = self;
        let whole = p.len() / STRIP * STRIP;
        let at = if q.is_empty() { 0 } else { whole };
        let (p, p_rest) = p.split_at_mut(whole);
        let (q, q_rest) = q.split_at_mut(at);
        strips::<STRIP>(sources, 0, p, q);
        strips::<1>(sources, whole, p_rest, q_rest);
    }
}

#[inline(always)]
fn strips<const N: usize>(sources: &[&[u8]], from: usize, p: &mut [u8], q: &mut [u8]) {
    let Some((last, others)) = sources.split_last() else { return };
    let (p, _) = p.as_chunks_mut::<N>();
    let (q, _) = q.as_chunks_mut::<N>();
    for (number, p) in p.iter_mut().enumerate() {
        let begin = from + number * N;
        let mut sum = [0; N];
        sum.copy_from_slice(&last[begin..begin + N]);
        if let Some(q) = q.get_mut(number) {
            // Horner's rule, from the last chunk to the first.
            let mut scaled = sum;
            for source in others.iter().rev() {
                let bytes = &source[begin..begin + N];
                for at in 0..N {
                    sum[at] ^= bytes[at];
                    scaled[at] = doubled(scaled[at]) ^ bytes[at];
                }
            }
            *q = scaled;
        } else {
            for source in others {
                let bytes = &source[begin..begin + N];
                sum.iter_mut().zip(bytes).for_each(|(sum, byte)| *sum ^= byte);
            }
        }
        *p = sum;
    }
}

/// A number times another one.
#[inline(always)]
const fn times(byte: u8, factor: u8) -> u8 {
    let (mut product, mut bit) = (0, 8);
    while bit > 0 {
        bit -= 1;
        let has_bit = 0_u8.wrapping_sub(factor >> bit & 1);
        product = doubled(product) ^ (byte & has_bit);
    }
    product
}

/// The product of two numbers.
pub const fn product(one: u8, other: u8) -> u8 {
    times(one, other)
}

/// 2 to a power.
pub const fn power(exponent: u8) -> u8 {
    let (mut result, mut left) = (1, exponent % 255);
    while left > 0 {
        result = product(result, 2);
        left -= 1;
    }
    result
}

/// The number whose product with another one is 1; 0 for 0.
pub const fn inverse(of: u8) -> u8 {
    // The group has 255 members: the 254th power.
    let (mut result, mut count) = (1, 0);
    while count < 254 {
        result = product(result, of);
        count += 1;
    }
    if of == 0 { 0 } else { result }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By shifting and adding, a bit at a time.
    fn slow(one: u8, other: u8) -> u8 {
        let (mut one, mut other, mut product) = (u16::from(one), other, 0_u16);
        while other > 0 {
            if other & 1 == 1 {
                product ^= one;
            }
            one <<= 1;
            if one & 0x100 > 0 {
                one ^= 0x11d;
            }
            other >>= 1;
        }
        product as u8
    }

    #[test]
    fn products_powers_and_inverses_are_those_of_the_field() {
        for one in 0..=255 {
            for other in 0..=255 {
                assert_eq!(product(one, other), slow(one, other), "{one} times {other}");
            }
            assert_eq!(product(one, inverse(one)), u8::from(one > 0));
        }
        assert_eq!((power(0), power(8), power(255)), (1, 0x1d, 1));
        let all: std::collections::BTreeSet<u8> = (0..255).map(power).collect();
        assert_eq!(all.len(), 255, "2 generates the field");
    }

    #[test]
    fn bytes_are_mixed_one_by_one() {
        let from: Vec<u8> = (0..77_u8).map(|byte| byte.wrapping_mul(91)).collect();
        let old: Vec<u8> = (0..80_u8).map(|byte| byte.wrapping_mul(37)).collect();
        for (scale, factor) in [(0, 1), (1, 1), (2, 1), (0, 7), (1, 0x80), (255, 0), (77, 201)] {
            let mut to = old.clone();
            mix(&mut to, scale, &from, factor);
            let sum = |at: usize| slow(old[at], scale) ^ slow(from[at], factor);
            let expected: Vec<u8> = (0..77).map(sum).chain(old[77..].iter().copied()).collect();
            assert_eq!(to, expected, "{scale} and {factor}");
        }
    }

    #[test]
    fn parities_are_sums_whatever_the_length_and_the_places() {
        for bytes in [1, 63, 64, 65, 200, 512] {
            for data in 1..=9_u8 {
                for parities in 1..=2_u8 {
                    let chunks = usize::from(data + parities);
                    let mut all: Vec<u8> = (0..chunks * bytes).map(|at| (at * 193 % 251) as u8).collect();
                    // Data from the last place on downwards, parities before it.
                    let places: Vec<u8> = (parities..data + parities).rev().collect();
                    let last: Vec<u8> = (0..parities).collect();
                    encode(&mut all, bytes, &places, &last);
                    for at in 0..bytes {
                        let byte = |place: u8| all[usize::from(place) * bytes + at];
                        let p = places.iter().fold(0, |sum, &place| sum ^ byte(place));
                        let term = |(chunk, &place): (usize, &u8)| slow(byte(place), power(chunk as u8));
                        let q = places.iter().enumerate().map(term).fold(0, |sum, term| sum ^ term);
                        assert_eq!(byte(0), p, "P of {data} chunks of {bytes} bytes at {at}");
                        assert!(parities == 1 || byte(1) == q, "Q of {data} chunks of {bytes} bytes at {at}");
                    }
                }
            }
        }
    }
}
