//! Every request this crate makes, the versions of it that the code understands, and why these. A request that is not in the
//! table cannot be sent.

use kafka_protocol::messages as m;
use kafka_protocol::protocol::Request;
use std::ops::RangeInclusive;

/// A request that may be sent.
pub(crate) trait Api: Request {
    /// For people: messages and logs.
    const NAME: &'static str;
    /// Versions whose fields the callers fill in and read correctly.
    const RANGE: RangeInclusive<i16>;

    /// How long the broker wants us to be quiet, in ms.
    fn throttle(response: &Self::Response) -> i32;
}

/// One row a request: its name, versions, and (`quiet`) whether its response knows no throttling.
macro_rules! apis {
    ($($request:ident $name:literal $range:expr, $($quiet:ident)? ;)*) => {
        #[cfg(test)]
        const TABLE: &[(&str, i16, RangeInclusive<i16>, kafka_protocol::protocol::VersionRange)] =
            &[$(($name, m::$request::KEY, $range, <m::$request as kafka_protocol::protocol::Message>::VERSIONS)),*];
        $(
        impl Api for m::$request {
            const NAME: &'static str = $name;
            const RANGE: RangeInclusive<i16> = $range;

            apis!(throttle $($quiet)?);
        }
        )*
    };
    (throttle quiet) => {
        fn throttle(_: &Self::Response) -> i32 {
            0
        }
    };
    (throttle) => {
        fn throttle(response: &Self::Response) -> i32 {
            response.throttle_time_ms
        }
    };
}

apis! {
    // 3 is the version every broker since 4.0 understands, and older ones answer with what they do (see `offers`).
    ApiVersionsRequest "ApiVersions" 0..=3,;
    // Before 1 a handshake is followed by bare tokens instead of SaslAuthenticate.
    SaslHandshakeRequest "SaslHandshake" 1..=1, quiet;
    // 1 tells how long the session lives (KIP-368).
    SaslAuthenticateRequest "SaslAuthenticate" 0..=2, quiet;
    // 4 can be told to create nothing; 7 tells leader epochs, 10 topic ids. 13 may fail as a whole.
    MetadataRequest "Metadata" 4..=13,;
    // 4 asks for many keys at once.
    FindCoordinatorRequest "FindCoordinator" 1..=6,;
    // 2 knows isolation levels; 4 tells leader epochs; 7 finds the newest timestamp. 8 and later add markers for tiered storage.
    ListOffsetsRequest "ListOffsets" 2..=10,;
    // 3 lets clients ask, not only replicas.
    OffsetForLeaderEpochRequest "OffsetForLeaderEpoch" 3..=4,;
    // 8 asks for many groups at once. 10 names topics by id, which a group of another cluster may not have.
    OffsetFetchRequest "OffsetFetch" 1..=9,;
    OffsetCommitRequest "OffsetCommit" 2..=9,;
    DescribeConfigsRequest "DescribeConfigs" 1..=4,;
    CreateTopicsRequest "CreateTopics" 2..=7,;
    // 4 is the first with record batches of format 2; 11 names our rack, 12 finds truncation, 13 and later name topics by id,
    // 16 tells new leaders (KIP-951). 17 and 18 are for replicas.
    FetchRequest "Fetch" 4..=16,;
    // 3 is the first with format 2, 7 with zstd. 12 belongs to transaction version 2 and to no other transaction; 13 names
    // topics by id.
    ProduceRequest "Produce" 3..=12,;
    // 3 and later take the producer id and epoch of an instance that goes on.
    InitProducerIdRequest "InitProducerId" 0..=5,;
    // Transaction version 1 only; 4 and later are for brokers.
    AddPartitionsToTxnRequest "AddPartitionsToTxn" 0..=3,;
    // 5 belongs to transaction version 2: it bumps the epoch. See `transaction_version`.
    EndTxnRequest "EndTxn" 0..=5,;
}

/// Every request's key and versions.
#[cfg(test)]
pub(super) fn keys() -> impl Iterator<Item = (i16, RangeInclusive<i16>)> {
    TABLE.iter().map(|(_, key, range, _)| (*key, range.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_stays_within_what_the_messages_can_say() {
        for (name, _, ours, theirs) in TABLE {
            assert!(theirs.min <= *ours.start() && *ours.end() <= theirs.max && !ours.is_empty(), "{name}");
        }
        assert!(TABLE.len() > 10);
    }
}
