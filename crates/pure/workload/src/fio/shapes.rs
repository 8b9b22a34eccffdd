//! Values that describe sizes and places: `bsrange`, `bssplit`, `random_distribution`, the part of `rw` behind a colon.

use super::lengths::BlockSizes;
use super::popular::Distribution;
use super::value::{self, KbBase};

/// Sizes of `bssplit` at most. \[C\] fio 3.33, thread_options.h
const SPLITS: usize = 64;

/// A size of requests.
pub(super) fn size(text: &str, base: KbBase) -> Result<u32, String> {
    let bytes = value::bytes(text, base)?;
    let fits = u32::try_from(bytes).ok().filter(|&bytes| bytes > 0);
    fits.ok_or_else(|| format!("{text:?} is outside its range, give 1 byte to less than 4g"))
}

/// Gives `sizes` the smallest and largest size.
pub(super) fn size_range(text: &str, base: KbBase, sizes: &BlockSizes) -> Result<BlockSizes, String> {
    let wrong = || format!("{text:?} cannot be read, give two sizes, for example 4k-64k");
    let (low, high) = text.split_once('-').ok_or_else(wrong)?;
    let (low, high) = (size(low, base)?, size(high, base)?);
    if low > high {
        return Err(wrong());
    }
    Ok(BlockSizes { bounds: Some((low, high)), ..sizes.clone() })
}

/// Gives `sizes` those with percentages; sizes without one, or with 0, share the rest in whole percents.
pub(super) fn size_split(text: &str, base: KbBase, sizes: &BlockSizes) -> Result<BlockSizes, String> {
    let entries = text.split(':').map(|entry| {
        let (bytes, percent) = entry.split_once('/').unwrap_or((entry, ""));
        let percent = if percent.is_empty() { 0 } else { value::number(percent, 0, 100)? };
        Ok((size(bytes, base)?, percent as u32))
    });
    let mut split: Vec<(u32, u32)> = entries.collect::<Result<_, String>>()?;
    if split.len() > SPLITS {
        return Err(format!("{text:?} holds more than {SPLITS} sizes, give fewer"));
    }
    let sum: u32 = split.iter().map(|entry| entry.1).sum();
    let missing = split.iter().filter(|entry| entry.1 == 0).count() as u32;
    if sum > 100 || (missing == 0 && sum != 100) {
        return Err(format!(
            "the percentages of {text:?} add up to {sum}, give 100, or leave one out to fill the rest"
        ));
    }
    for entry in split.iter_mut().filter(|entry| entry.1 == 0) {
        entry.1 = (100 - sum) / missing;
    }
    let bounds = split.iter().map(|entry| entry.0).min().zip(split.iter().map(|entry| entry.0).max());
    split.sort_by_key(|entry| entry.1);
    Ok(BlockSizes { bounds, split, ..sizes.clone() })
}

/// A distribution of offsets.
pub(super) fn distribution(text: &str) -> Result<Distribution, String> {
    let (name, parameters) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
    // Default of the parameter in fio. [C] fio 3.33, fio.h
    let read = |default: f64, accepted: &str, fits: fn(f64) -> bool| {
        let Some(text) = parameters else { return Ok((default, None)) };
        let (text, center) = text.split_once(':').map_or((text, None), |(text, center)| (text, Some(center)));
        let is_share = |center: f64| (0.0..=1.0).contains(&center);
        let center = center.map(|center| value::fraction(center, "a centre from 0 to 1", is_share)).transpose()?;
        Ok::<_, String>((value::fraction(text, accepted, fits)?, center))
    };
    Ok(match name {
        "random" if parameters.is_none() => Distribution::Random,
        "zipf" => {
            let accepted = "an exponent above 0 and below 10, but not 1";
            let (theta, center) = read(1.1, accepted, |theta| theta > 0.0 && theta < 10.0 && theta != 1.0)?;
            Distribution::Zipf { theta, center }
        }
        "pareto" => {
            let (input, center) = read(0.2, "an input above 0 and below 1", |input| input > 0.0 && input < 1.0)?;
            Distribution::Pareto { input, center }
        }
        "normal" => {
            let accepted = "a deviation in percent from 0 to below 100";
            let (percent, center) = read(0.0, accepted, |percent| (0.0..100.0).contains(&percent))?;
            Distribution::Normal { percent, center }
        }
        "zoned" => Distribution::Zoned(zones(parameters.unwrap_or_default())?),
        _ => {
            let known = "random, zipf:theta, pareto:input, normal:deviation or zoned:access/size:...";
            return Err(format!("{text:?} is not supported, give {known}"));
        }
    })
}

fn zones(text: &str) -> Result<Vec<(u64, u64)>, String> {
    let wrong = || {
        format!(
            "zones {text:?} cannot be read, give access/size:access/size:..., each of both adding up to 100 percent"
        )
    };
    let zones = text.split(':').map(|zone| {
        let (access, size) = zone.split_once('/').ok_or_else(wrong)?;
        Ok((value::number(access, 0, 100)?, value::number(size, 1, 100)?))
    });
    let zones: Vec<(u64, u64)> = zones.collect::<Result<_, String>>()?;
    if zones.iter().map(|zone| zone.0).sum::<u64>() != 100 || zones.iter().map(|zone| zone.1).sum::<u64>() != 100 {
        return Err(wrong());
    }
    Ok(zones)
}

/// Bytes left out between requests that go on; below zero they go backwards.
pub(super) fn step(text: &str, base: KbBase) -> Result<i64, String> {
    let (digits, sign) = text.strip_prefix('-').map_or((text, 1), |digits| (digits, -1));
    // Amounts are below 2^60.
    Ok(sign * value::bytes(digits, base)?.cast_signed())
}
