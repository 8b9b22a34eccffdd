//! Host processor pool, driver costs and request feeding.
