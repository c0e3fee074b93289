"""Random values of every Arrow type that Parquet writers know, and the canonical text of each as the file's schema
means it (daemon/output/canonical-text.ts). The texts are made from the values that go into a writer, never from what a
reader gives back. A null rate of None makes fields required at every level."""

import hashlib
import json
import struct
from decimal import Context, Decimal

import pyarrow as pa

EPOCH_SCALES = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
EXACT = Context(prec=100)


class Kind:
    """A type: what Arrow calls it, how a value is made for pa.array, how it is written down."""

    def __init__(self, name, make, text, arrow, encodings=(), pool=1000):
        self.name = name
        self.make_value = make
        self.text = text
        self.arrow = arrow if callable(arrow) else lambda required: arrow
        # encodings beside PLAIN and dictionaries that the specification allows for it
        self.encodings = encodings
        self.pool = pool

    def leaves(self, path, element):
        """Paths of Parquet columns and their kinds; `element` is what lists call theirs."""
        yield path, self

    def maker(self, random, nulls, distinct):
        """A function that gives the next value, out of `distinct` ones."""
        pool = [self.make_value(random, k) for k in range(min(distinct, self.pool))]
        return or_null(random, nulls, lambda: pool[random.randrange(len(pool))])


class ListOf:
    def __init__(self, element, arrow=pa.list_, size=None):
        self.element = element
        form = "list" if arrow is pa.list_ else arrow.__name__
        self.name = f"{form}{'' if size is None else size}_{element.name}"
        self.make_arrow = arrow
        self.size = size

    def leaves(self, path, element):
        yield from self.element.leaves(f"{path}.list.{element}", element)

    def arrow(self, required):
        field = pa.field("item", self.element.arrow(required), nullable=not required)
        return self.make_arrow(field) if self.size is None else self.make_arrow(field, self.size)

    def maker(self, random, nulls, distinct):
        element = self.element.maker(random, nulls, distinct)
        lengths = [0, 0, 1, 1, 2, 3, 5, 17]
        length = (lambda: self.size) if self.size is not None else lambda: lengths[random.randrange(8)]
        return or_null(random, nulls, lambda: [element() for _ in range(length())])

    def text(self, value):
        return "[" + ",".join(text_of(self.element, one) for one in value) + "]"


class StructOf:
    def __init__(self, **fields):
        self.fields = fields
        self.name = "struct_" + "_".join(fields)

    def leaves(self, path, element):
        for name, kind in self.fields.items():
            yield from kind.leaves(f"{path}.{name}", element)

    def arrow(self, required):
        return pa.struct([pa.field(name, kind.arrow(required), nullable=not required) for name, kind in self.fields.items()])

    def maker(self, random, nulls, distinct):
        makers = {name: kind.maker(random, nulls, distinct) for name, kind in self.fields.items()}
        return or_null(random, nulls, lambda: {name: make() for name, make in makers.items()})

    def text(self, value):
        return "{" + ",".join(f"{quote(name)}:{text_of(kind, value[name])}" for name, kind in self.fields.items()) + "}"


class MapOf:
    def __init__(self, key, value):
        self.key = key
        self.value = value
        self.name = f"map_{key.name}_{value.name}"

    def leaves(self, path, element):
        yield from self.key.leaves(f"{path}.key_value.key", element)
        yield from self.value.leaves(f"{path}.key_value.value", element)

    encodings = ()

    def arrow(self, required):
        return pa.map_(pa.field("key", self.key.arrow(True), nullable=False), pa.field("value", self.value.arrow(required), nullable=not required))

    def maker(self, random, nulls, distinct):
        key = self.key.maker(random, None, 1000)
        value = self.value.maker(random, nulls, distinct)

        def make():
            keys = {self.key.text(one): one for one in (key() for _ in range(random.randrange(5)))}
            return [(one, value()) for one in keys.values()]

        return or_null(random, nulls, make)

    def text(self, value):
        return "[" + ",".join(f"[{self.key.text(key)},{text_of(self.value, one)}]" for key, one in value) + "]"


def or_null(random, nulls, make):
    if not nulls:
        return make
    return lambda: None if random.random() < nulls else make()


def text_of(kind, value):
    return "null" if value is None else kind.text(value)


def checksum(kind, values):
    """As daemon/output/checksum.ts makes it."""
    text = "".join(text_of(kind, value) + "\n" for value in values)
    return hashlib.sha256(text.encode()).hexdigest()


def quote(text):
    return json.dumps(text, ensure_ascii=False)


def hexadecimal(value):
    return f'"{value.hex()}"'


def edged(edges, make):
    """The edge values first, then random ones."""
    return lambda random, k: edges[k] if k < len(edges) else make(random)


def integer(bits, signed):
    low = -(1 << (bits - 1)) if signed else 0
    high = (1 << (bits - 1 if signed else bits)) - 1
    edges = [low, high, 0, 1, high - 1, low + 1]
    arrow = getattr(pa, f"{'' if signed else 'u'}int{bits}")()
    encodings = ("DELTA_BINARY_PACKED",) + (("BYTE_STREAM_SPLIT",) if bits >= 32 else ())
    make = edged(edges, lambda random: random.randrange(low, high + 1) >> random.randrange(bits))
    return Kind(str(arrow), make, str, arrow, encodings)


def floating(bits, arrow):
    pack, digits = {16: ("<e", 4), 32: ("<f", 8), 64: ("<d", 16)}[bits]
    width = bits // 8

    def text(value):
        if value != value:
            return '"nan"'
        return f'"{int.from_bytes(struct.pack(pack, value), "little"):0{digits}x}"'

    def from_bits(random):
        return struct.unpack(pack, random.randbytes(width))[0]

    edges = [0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1.5]
    return Kind(str(arrow), edged(edges, from_bits), text, arrow, ("BYTE_STREAM_SPLIT",))


def decimal(bits, precision, scale):
    arrow = getattr(pa, f"decimal{bits}")(precision, scale)
    high = 10**precision - 1
    stored = lambda value: Decimal(value).scaleb(-scale, EXACT)
    edges = [high, -high, 0, 1, -1]
    make = edged(edges, lambda random: random.randrange(-high, high + 1) // 10 ** random.randrange(precision))
    text = lambda value: str(int(value.scaleb(scale, EXACT)))
    return Kind(f"decimal{bits}_{precision}_{scale}", lambda random, k: stored(make(random, k)), text, arrow, ("DECIMAL",))


def counted(name, arrow, low, high, scale=1, encodings=("DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"), step=1):
    """Dates, times and timestamps: stored integers; the file's are `scale` times Arrow's."""
    edges = [0, low, high, -step if low < 0 else step]
    make = edged(edges, lambda random: random.randrange(low, high + 1) // step * step)
    text = lambda value: str(value * scale if scale >= 1 else value // step)
    return Kind(name, make, text, arrow, encodings)


def timestamp(unit, zone=None):
    span = 2 * 10**9 * EPOCH_SCALES[unit]
    name = f"timestamp_{unit}_{'local' if zone is None else zone.replace('/', '_')}"
    # Parquet has no seconds
    return counted(name, pa.timestamp(unit, zone), -span, 4 * span, 1000 if unit == "s" else 1)


LETTERS = ["a", "b", '"', "\\", "\n", "\x01", "é", "漢", "🎈", " ", "0"]


def random_text(random):
    prefix = "prefix/" * random.randrange(3)
    return prefix + "".join(random.choice(LETTERS) for _ in range(random.randrange(20)))


TEXT_EDGES = ["", "null", "\ufeffmark", "long " * 200]
BYTES_EDGES = [b"", b"\x00\xff", bytes(range(256))]
BYTE_ARRAY_ENCODINGS = ("DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY")
FIXED_ENCODINGS = ("DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT")


def text_kind(name, arrow):
    return Kind(name, edged(TEXT_EDGES, random_text), quote, arrow, BYTE_ARRAY_ENCODINGS)


def bytes_kind(name, arrow):
    make = edged(BYTES_EDGES, lambda random: b"\x07" * random.randrange(9) + random.randbytes(random.randrange(20)))
    return Kind(name, make, hexadecimal, arrow, BYTE_ARRAY_ENCODINGS)


def fixed(width):
    make = edged([bytes(width), b"\xff" * width], lambda random: random.randbytes(width))
    return Kind(f"fixed_{width}", make, hexadecimal, pa.binary(width), FIXED_ENCODINGS)


JSON_DOCUMENT = edged(["{}", "null"], lambda random: json.dumps({"k": random.randrange(100), "é": [1, None]}, ensure_ascii=False))

BOOLEAN = Kind("bool", lambda random, k: random.random() < 0.5, lambda value: str(value).lower(), pa.bool_(), ("RLE",), 50)
INTEGERS = [integer(bits, signed) for bits in (8, 16, 32, 64) for signed in (True, False)]
INT32, INT64 = INTEGERS[4], INTEGERS[6]
FLOATS = [floating(32, pa.float32()), floating(64, pa.float64())]
HALF = floating(16, pa.float16())
DATE = counted("date", pa.date32(), -719162, 2932896)
TEXT = text_kind("string", pa.string())
BYTES = bytes_kind("binary", pa.binary())
MILLIS, MICROS, NANOS = [timestamp(unit) for unit in ("ms", "us", "ns")]
DAY = 86400
TIME_NANOS = counted("time_ns", pa.time64("ns"), 0, DAY * 10**9 - 1)
DECIMAL = decimal(128, 18, 2)

ARROW_FLAT = [
    BOOLEAN,
    *INTEGERS,
    *FLOATS,
    HALF,
    DATE,
    MILLIS,
    MICROS,
    NANOS,
    TEXT,
    BYTES,
    *[decimal(32, precision, scale) for precision, scale in ((1, 0), (9, 2))],
    *[decimal(64, precision, scale) for precision, scale in ((10, 0), (18, 18))],
    *[decimal(128, precision, scale) for precision, scale in ((4, 1), (18, 4), (19, 0), (38, 10))],
    *[decimal(256, precision, scale) for precision, scale in ((9, 3), (39, 0), (76, 38))],
    counted("date64", pa.date64(), -719162 * DAY * 1000, 2932896 * DAY * 1000, 0, step=DAY * 1000),
    counted("time_s", pa.time32("s"), 0, DAY - 1, 1000),
    counted("time_ms", pa.time32("ms"), 0, DAY * 1000 - 1),
    counted("time_us", pa.time64("us"), 0, DAY * 10**6 - 1),
    TIME_NANOS,
    timestamp("s"),
    *[timestamp(unit, zone) for unit in ("ms", "us", "ns") for zone in ("UTC", "Europe/Zurich")],
    counted("duration", pa.duration("us"), -(10**15), 10**15),
    text_kind("large_string", pa.large_string()),
    text_kind("string_view", pa.string_view()),
    Kind("dictionary", edged(TEXT_EDGES, random_text), quote, pa.dictionary(pa.int32(), pa.string())),
    Kind("json", JSON_DOCUMENT, quote, pa.json_(), BYTE_ARRAY_ENCODINGS),
    bytes_kind("large_binary", pa.large_binary()),
    bytes_kind("binary_view", pa.binary_view()),
    fixed(1),
    fixed(5),
    fixed(16),
    Kind("uuid", lambda random, k: random.randbytes(16), hexadecimal, pa.uuid(), FIXED_ENCODINGS),
]

# Nested shapes that every writer has; more below for those that know Arrow's.
NESTED = [
    ListOf(INT32),
    ListOf(TEXT),
    ListOf(BOOLEAN),
    ListOf(ListOf(INT64)),
    ListOf(ListOf(ListOf(TEXT))),
    StructOf(a=INT32, b=TEXT),
    StructOf(x=StructOf(y=StructOf(z=FLOATS[1])), w=DATE),
    ListOf(StructOf(a=INT64, b=TEXT, c=ListOf(FLOATS[0]))),
    StructOf(items=ListOf(StructOf(name=TEXT, counts=ListOf(INT32))), total=DECIMAL),
    *[ListOf(kind) for kind in (DATE, MICROS, NANOS, DECIMAL, BYTES)],
]
MAPS = [
    MapOf(TEXT, INT32),
    MapOf(INT64, TEXT),
    MapOf(TEXT, ListOf(INT32)),
    ListOf(MapOf(TEXT, FLOATS[1])),
    StructOf(m=MapOf(TEXT, StructOf(a=INT32))),
]
ARROW_NESTED = [
    *NESTED,
    *MAPS,
    MapOf(TEXT, MapOf(INT32, TEXT)),
    ListOf(HALF),
    ListOf(fixed(3)),
    ListOf(decimal(256, 50, 5)),
    ListOf(INTEGERS[1]),
    ListOf(INT32, pa.large_list),
    ListOf(TEXT, pa.list_view),
    ListOf(INT32, pa.list_, 3),
    ListOf(StructOf(a=ListOf(TEXT, pa.list_, 2))),
]
