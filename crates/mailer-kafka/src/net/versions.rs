//! Every request this crate makes, the versions of it that the code understands, and why these. A request that is not in the
//! table cannot be sent.

use super::shape::Message;
use super::shapes;
use kafka_protocol::messages as m;
#[cfg(test)]
use kafka_protocol::protocol::Decodable;
use kafka_protocol::protocol::Request;
use std::ops::RangeInclusive;

/// A request that may be sent.
pub(crate) trait Api: Request {
    /// For people: messages and logs.
    const NAME: &'static str;
    /// Versions whose fields the callers fill in and read correctly.
    const RANGE: RangeInclusive<i16>;

    /// The structure of its response.
    const SHAPE: &'static Message;

    /// How long the broker wants us to be quiet, in ms.
    fn throttle(response: &Self::Response) -> i32;
}

/// A row of the table, for tests.
#[cfg(test)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) key: i16,
    pub(super) range: RangeInclusive<i16>,
    pub(super) theirs: kafka_protocol::protocol::VersionRange,
    pub(super) shape: &'static Message,
    /// Reads a response; how many bytes are left behind it.
    pub(super) decode: fn(bytes::Bytes, i16) -> Result<usize, String>,
}

/// One row a request: its name, the shape of its response, versions, and (`quiet`) whether its response knows no throttling.
macro_rules! apis {
    ($($request:ident $name:literal $shape:ident $range:expr, $($quiet:ident)? ;)*) => {
        #[cfg(test)]
        pub(super) const TABLE: &[Row] = &[$(Row {
            name: $name,
            key: m::$request::KEY,
            range: $range,
            theirs: <m::$request as kafka_protocol::protocol::Message>::VERSIONS,
            shape: &shapes::$shape,
            decode: |mut bytes, version| {
                let read = <m::$request as Request>::Response::decode(&mut bytes, version);
                read.map(|_| bytes.len()).map_err(|error| error.to_string())
            },
        }),*];
        $(
        impl Api for m::$request {
            const NAME: &'static str = $name;
            const RANGE: RangeInclusive<i16> = $range;
            const SHAPE: &'static Message = &shapes::$shape;

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
    ApiVersionsRequest "ApiVersions" API_VERSIONS 0..=3,;
    // Before 1 a handshake is followed by bare tokens instead of SaslAuthenticate.
    SaslHandshakeRequest "SaslHandshake" SASL_HANDSHAKE 1..=1, quiet;
    // 1 tells how long the session lives (KIP-368).
    SaslAuthenticateRequest "SaslAuthenticate" SASL_AUTHENTICATE 0..=2, quiet;
    // 4 can be told to create nothing; 7 tells leader epochs, 10 topic ids. 13 may fail as a whole.
    MetadataRequest "Metadata" METADATA 4..=13,;
    // 4 asks for many keys at once.
    FindCoordinatorRequest "FindCoordinator" FIND_COORDINATOR 1..=6,;
    // 2 knows isolation levels; 4 tells leader epochs; 7 finds the newest timestamp. 8 and later add markers for tiered storage.
    ListOffsetsRequest "ListOffsets" LIST_OFFSETS 2..=10,;
    // 3 lets clients ask, not only replicas.
    OffsetForLeaderEpochRequest "OffsetForLeaderEpoch" OFFSET_FOR_LEADER_EPOCH 3..=4,;
    // 8 asks for many groups at once. 10 names topics by id, which a group of another cluster may not have.
    OffsetFetchRequest "OffsetFetch" OFFSET_FETCH 1..=9,;
    OffsetCommitRequest "OffsetCommit" OFFSET_COMMIT 2..=9,;
    DescribeConfigsRequest "DescribeConfigs" DESCRIBE_CONFIGS 1..=4,;
    CreateTopicsRequest "CreateTopics" CREATE_TOPICS 2..=7,;
    // 4 is the first with record batches of format 2; 11 names our rack, 12 finds truncation, 13 and later name topics by id,
    // 16 tells new leaders (KIP-951). 17 and 18 are for replicas.
    FetchRequest "Fetch" FETCH 4..=16,;
    // 3 is the first with format 2, 7 with zstd. 12 belongs to transaction version 2 and to no other transaction; 13 names
    // topics by id.
    ProduceRequest "Produce" PRODUCE 3..=12,;
    // 3 and later take the producer id and epoch of an instance that goes on.
    InitProducerIdRequest "InitProducerId" INIT_PRODUCER_ID 0..=5,;
    // Transaction version 1 only; 4 and later are for brokers.
    AddPartitionsToTxnRequest "AddPartitionsToTxn" ADD_PARTITIONS_TO_TXN 0..=3,;
    // 5 belongs to transaction version 2: it bumps the epoch. See `transaction_version`.
    EndTxnRequest "EndTxn" END_TXN 0..=5,;
    // For tools.
    DescribeTransactionsRequest "DescribeTransactions" DESCRIBE_TRANSACTIONS 0..=0,;
}

/// Every request's key and versions.
#[cfg(test)]
pub(super) fn keys() -> impl Iterator<Item = (i16, RangeInclusive<i16>)> {
    TABLE.iter().map(|row| (row.key, row.range.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_stays_within_what_the_messages_can_say() {
        for Row { name, range, theirs, .. } in TABLE {
            assert!(theirs.min <= *range.start() && *range.end() <= theirs.max && !range.is_empty(), "{name}");
        }
        assert!(TABLE.len() > 10);
    }
}
