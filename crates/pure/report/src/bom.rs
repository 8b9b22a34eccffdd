//! Bill of materials of one drive. Source: [P] sheet xbof §4.3, closed forms §8.9.

/// Prices in dollars.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    /// NAND for each 128 GB.
    pub nand_per_128_gb: f64,
    /// DRAM for each GB.
    pub dram_per_gb: f64,
    /// Controller of a drive with full resources.
    pub controller: f64,
    /// Controller of an open-channel drive.
    pub oc_controller: f64,
    /// Board, packaging and other parts.
    pub other: f64,
    /// Premium on controller and DRAM for CXL, as a share.
    pub cxl_premium: f64,
}

/// How a drive's compute part is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compute {
    /// Full controller and DRAM.
    Full,
    /// Open-channel controller, no DRAM.
    OpenChannel,
    /// A share of controller and DRAM.
    Shrunk,
    /// Shrunk, with the CXL premium.
    ShrunkCxl,
}

/// Shares that a shrunk drive keeps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    /// Share of the controller's cores, and so of its price.
    pub cores: f64,
    /// Share of the DRAM.
    pub memory: f64,
}

/// Bytes of DRAM beside so many bytes of flash: a GB for each TB when full, and `kept` of that when shrunk.
pub fn dram_bytes(flash_bytes: f64, compute: Compute, kept: Shares) -> f64 {
    let whole = flash_bytes / 1024.0;
    match compute {
        Compute::Full => whole,
        Compute::OpenChannel => 0.0,
        Compute::Shrunk | Compute::ShrunkCxl => kept.memory * whole,
    }
}

/// Price of one drive of `terabytes` in dollars, with 1 GB of DRAM for each TB when full, and `kept` of
/// controller and DRAM when shrunk.
pub fn bill_of_materials(prices: &Prices, terabytes: f64, compute: Compute, kept: Shares) -> f64 {
    // 8 packages of 128 GB make a terabyte.
    let nand = 8.0 * prices.nand_per_128_gb * terabytes;
    let memory = prices.dram_per_gb * terabytes;
    let shrunk = kept.cores * prices.controller + kept.memory * memory;
    let compute = match compute {
        Compute::Full => prices.controller + memory,
        Compute::OpenChannel => prices.oc_controller,
        Compute::Shrunk => shrunk,
        Compute::ShrunkCxl => shrunk * (1.0 + prices.cxl_premium),
    };
    nand + prices.other + compute
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICES: Prices = Prices {
        nand_per_128_gb: 4.95,
        dram_per_gb: 7.2,
        controller: 48.0,
        oc_controller: 24.0,
        other: 6.0,
        cxl_premium: 0.1,
    };

    #[test]
    fn dram_follows_flash_as_the_price_does() {
        let of = |compute| dram_bytes(4096.0, compute, Shares { cores: 0.25, memory: 0.5 });
        let all = [Compute::Full, Compute::OpenChannel, Compute::Shrunk, Compute::ShrunkCxl].map(of);
        assert_eq!(all, [4.0, 0.0, 2.0, 2.0]);
    }

    #[test]
    fn a_2_tb_drive_costs_what_the_closed_form_says() {
        let price = |compute| bill_of_materials(&PRICES, 2.0, compute, Shares { cores: 0.5, memory: 0.5 });
        assert!((price(Compute::Full) - 147.6).abs() < 1e-9);
        assert!((price(Compute::Shrunk) - 116.4).abs() < 1e-9);
        assert!((price(Compute::ShrunkCxl) - 119.52).abs() < 1e-9);
        assert!((price(Compute::OpenChannel) - 109.2).abs() < 1e-9);
    }
}
