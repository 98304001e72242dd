//! The structure of every answer, as the protocol's own files (`*Response.json`) have it, as far as `shape` needs
//! to know it. A test compares them with the decoder.

use super::shape::Shape::{Bytes, Each, Fixed, Many, One, Text};
use super::shape::{Field, Message, Shape, Structure};
use std::ops::RangeInclusive;

/// In no version so far has a field been taken back without a limit of its own.
const LAST: i16 = i16::MAX;
const BOOL: usize = 1;
const UUID: usize = 16;

const fn field(versions: RangeInclusive<i16>, shape: Shape) -> Field {
    Field { versions, shape }
}

const fn always(shape: Shape) -> Field {
    field(0..=LAST, shape)
}

const fn since(version: i16, shape: Shape) -> Field {
    field(version..=LAST, shape)
}

const fn until(version: i16, shape: Shape) -> Field {
    field(0..=version, shape)
}

/// A structure without tagged fields of its own.
const fn structure(fields: &'static [Field]) -> Structure {
    Structure { fields, tagged: &[] }
}

const fn message(flexible: i16, fields: &'static [Field]) -> Message {
    Message { flexible, body: structure(fields) }
}

const THROTTLE: Shape = Fixed(4);
const ERROR: Shape = Fixed(2);
/// Number, host, port, rack: beside answers that name a new leader.
const NODE_ENDPOINT: Structure = structure(&[always(Fixed(4)), always(Text), always(Fixed(4)), always(Text)]);
const LEADER_AND_EPOCH: Structure = structure(&[always(Fixed(4 + 4))]);

pub(super) const API_VERSIONS: Message = Message {
    flexible: 3,
    body: Structure {
        fields: &[always(ERROR), always(Many(&structure(&[always(Fixed(2 + 2 + 2))]))), since(1, THROTTLE)],
        tagged: &[(0, Many(&FEATURE)), (1, Fixed(8)), (2, Many(&FEATURE)), (3, Fixed(BOOL))],
    },
};
const FEATURE: Structure = structure(&[always(Text), always(Fixed(2 + 2))]);

pub(super) const SASL_HANDSHAKE: Message = message(LAST, &[always(ERROR), always(Each(&Text))]);

pub(super) const SASL_AUTHENTICATE: Message =
    message(2, &[always(ERROR), always(Text), always(Bytes), since(1, Fixed(8))]);

pub(super) const METADATA: Message = message(
    9,
    &[
        since(3, THROTTLE),
        always(Many(&structure(&[always(Fixed(4)), always(Text), always(Fixed(4)), since(1, Text)]))),
        since(2, Text),
        since(1, Fixed(4)),
        always(Many(&METADATA_TOPIC)),
        field(8..=10, Fixed(4)),
        since(13, ERROR),
    ],
);
const METADATA_TOPIC: Structure = structure(&[
    always(ERROR),
    always(Text),
    since(10, Fixed(UUID)),
    since(1, Fixed(BOOL)),
    always(Many(&METADATA_PARTITION)),
    since(8, Fixed(4)),
]);
const METADATA_PARTITION: Structure = structure(&[
    always(ERROR),
    always(Fixed(4 + 4)),
    since(7, Fixed(4)),
    always(Each(&Fixed(4))),
    always(Each(&Fixed(4))),
    since(5, Each(&Fixed(4))),
]);

pub(super) const FIND_COORDINATOR: Message = message(
    3,
    &[
        since(1, THROTTLE),
        until(3, ERROR),
        field(1..=3, Text),
        until(3, Fixed(4)),
        until(3, Text),
        until(3, Fixed(4)),
        since(4, Many(&COORDINATOR)),
    ],
);
const COORDINATOR: Structure =
    structure(&[always(Text), always(Fixed(4)), always(Text), always(Fixed(4)), always(ERROR), always(Text)]);

pub(super) const LIST_OFFSETS: Message = message(6, &[since(2, THROTTLE), always(Many(&OFFSETS_OF_TOPIC))]);
const OFFSETS_OF_TOPIC: Structure =
    structure(&[always(Text), always(Many(&structure(&[always(Fixed(4 + 2 + 8 + 8)), since(4, Fixed(4))])))]);

pub(super) const OFFSET_FOR_LEADER_EPOCH: Message = message(4, &[always(THROTTLE), always(Many(&EPOCHS_OF_TOPIC))]);
const EPOCHS_OF_TOPIC: Structure =
    structure(&[always(Text), always(Many(&structure(&[always(Fixed(2 + 4 + 4 + 8))])))]);

pub(super) const OFFSET_FETCH: Message = message(
    6,
    &[
        since(3, THROTTLE),
        until(7, Many(&COMMITTED_OF_TOPIC)),
        field(2..=7, ERROR),
        since(8, Many(&structure(&[always(Text), always(Many(&COMMITTED_OF_TOPIC)), always(ERROR)]))),
    ],
);
const COMMITTED_OF_TOPIC: Structure = structure(&[until(9, Text), since(10, Fixed(UUID)), always(Many(&COMMITTED))]);
const COMMITTED: Structure = structure(&[always(Fixed(4 + 8)), since(5, Fixed(4)), always(Text), always(ERROR)]);

pub(super) const OFFSET_COMMIT: Message = message(8, &[since(3, THROTTLE), always(Many(&CODES_OF_TOPIC))]);
/// Partitions and what became of them.
const CODES_OF_TOPIC: Structure = structure(&[always(Text), always(Many(&structure(&[always(Fixed(4 + 2))])))]);

pub(super) const DESCRIBE_CONFIGS: Message = message(4, &[always(THROTTLE), always(Many(&CONFIGS_OF_RESOURCE))]);
const CONFIGS_OF_RESOURCE: Structure =
    structure(&[always(ERROR), always(Text), always(Fixed(1)), always(Text), always(Many(&CONFIG))]);
const CONFIG: Structure = structure(&[
    always(Text),
    always(Text),
    always(Fixed(BOOL + 1 + BOOL)),
    always(Many(&structure(&[always(Text), always(Text), always(Fixed(1))]))),
    since(3, Fixed(1)),
    since(3, Text),
]);

pub(super) const CREATE_TOPICS: Message = message(5, &[always(THROTTLE), always(Many(&CREATED_TOPIC))]);
const CREATED_TOPIC: Structure = Structure {
    fields: &[
        always(Text),
        since(7, Fixed(UUID)),
        always(ERROR),
        always(Text),
        since(5, Fixed(4 + 2)),
        since(5, Many(&structure(&[always(Text), always(Text), always(Fixed(BOOL + 1 + BOOL))]))),
    ],
    tagged: &[(0, ERROR)],
};

pub(super) const FETCH: Message = Message {
    flexible: 12,
    body: Structure {
        fields: &[always(THROTTLE), since(7, ERROR), since(7, Fixed(4)), always(Many(&FETCHED_OF_TOPIC))],
        tagged: &[(0, Many(&NODE_ENDPOINT))],
    },
};
const FETCHED_OF_TOPIC: Structure = structure(&[until(12, Text), since(13, Fixed(UUID)), always(Many(&FETCHED))]);
const FETCHED: Structure = Structure {
    fields: &[
        always(Fixed(4 + 2 + 8 + 8)),
        since(5, Fixed(8)),
        always(Many(&structure(&[always(Fixed(8 + 8))]))),
        since(11, Fixed(4)),
        always(Bytes),
    ],
    // The epoch where logs part, the leader, a snapshot.
    tagged: &[
        (0, One(&structure(&[always(Fixed(4 + 8))]))),
        (1, One(&LEADER_AND_EPOCH)),
        (2, One(&structure(&[always(Fixed(8 + 4))]))),
    ],
};

pub(super) const PRODUCE: Message = Message {
    flexible: 9,
    body: Structure {
        fields: &[
            always(Many(&structure(&[until(12, Text), since(13, Fixed(UUID)), always(Many(&PRODUCED))]))),
            always(THROTTLE),
        ],
        tagged: &[(0, Many(&NODE_ENDPOINT))],
    },
};
const PRODUCED: Structure = Structure {
    fields: &[
        always(Fixed(4 + 2 + 8 + 8)),
        since(5, Fixed(8)),
        since(8, Many(&structure(&[always(Fixed(4)), always(Text)]))),
        since(8, Text),
    ],
    tagged: &[(0, One(&LEADER_AND_EPOCH))],
};

pub(super) const INIT_PRODUCER_ID: Message =
    message(2, &[always(THROTTLE), always(ERROR), always(Fixed(8 + 2)), since(6, Fixed(8 + 2))]);

/// Up to version 3.
pub(super) const ADD_PARTITIONS_TO_TXN: Message = message(3, &[always(THROTTLE), always(Many(&CODES_OF_TOPIC))]);

pub(super) const DESCRIBE_TRANSACTIONS: Message = message(0, &[always(THROTTLE), always(Many(&TRANSACTION_STATE))]);
/// Error, id, state, timeout, start, producer, epoch, topics with their partitions.
const TRANSACTION_STATE: Structure = structure(&[
    always(ERROR),
    always(Text),
    always(Text),
    always(Fixed(4 + 8 + 8 + 2)),
    always(Many(&structure(&[always(Text), always(Each(&Fixed(4)))]))),
]);

pub(super) const END_TXN: Message = message(3, &[always(THROTTLE), always(ERROR), since(5, Fixed(8 + 2))]);
