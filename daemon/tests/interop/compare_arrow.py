"""Compares our Arrow IPC stream of each file of a folder, <file>.arrows, with what pyarrow reads in <file> itself:

    python compare_arrow.py <folder>

Types must be the same but for what the ARROW:schema that pyarrow keeps in its files says beyond Parquet's own types;
values must be the same bit for bit. Prints what differs; ends with 1 if anything does."""

import json
import os
import sys

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq


def plain_type(type):
    """The type that the Parquet schema alone gives."""
    if isinstance(type, pa.BaseExtensionType):
        return plain_type(type.storage_type)
    if pa.types.is_dictionary(type):
        return plain_type(type.value_type)
    if pa.types.is_large_string(type) or pa.types.is_string_view(type):
        return pa.string()
    if pa.types.is_large_binary(type) or pa.types.is_binary_view(type):
        return pa.binary()
    if pa.types.is_date64(type):
        return pa.date32()
    if pa.types.is_timestamp(type):
        unit = "ms" if type.unit == "s" else type.unit
        return pa.timestamp(unit, type.tz)
    if pa.types.is_time32(type):
        return pa.time32("ms")
    if pa.types.is_decimal(type):
        wide = pa.decimal256 if type.precision > 38 else pa.decimal128
        return wide(type.precision, type.scale)
    if pa.types.is_map(type):
        return pa.map_(plain_field(type.key_field), plain_field(type.item_field))
    if is_list(type):
        # the name of a list's element is the file's, or what ARROW:schema says it was
        return pa.list_(plain_field(type.value_field).with_name("element"))
    if pa.types.is_struct(type):
        return pa.struct([plain_field(type.field(k)) for k in range(type.num_fields)])
    return type


def plain_field(field):
    return pa.field(field.name, plain_type(field.type), field.nullable)


def is_list(type):
    tests = ("list", "large_list", "fixed_size_list", "list_view", "large_list_view")
    return any(getattr(pa.types, f"is_{test}")(type) for test in tests)


def differences(theirs, ours, int96=()):
    """What differs; columns of INT96, named, may have the zone that ARROW:schema gives them, which pyarrow leaves."""
    if theirs.num_rows != ours.num_rows or theirs.num_columns != ours.num_columns:
        yield f"{ours.num_rows} x {ours.num_columns}, expected {theirs.num_rows} x {theirs.num_columns}"
        return
    for their_field, our_field, their_column, our_column in zip(theirs.schema, ours.schema, theirs.columns, ours.columns):
        wanted = plain_field(their_field)
        given = plain_field(our_field)
        if our_field.name in int96:
            given = given.with_type(pa.timestamp("ns"))
        if wanted != given:
            yield f"{their_field.name}: type {our_field}, expected {wanted}"
            continue
        their_array, our_array = one_array(their_column), one_array(our_column)
        our_array.validate(full=True)
        if not is_same(our_array, their_array):
            row = next(k for k in range(len(our_array)) if not is_same(our_array.slice(k, 1), their_array.slice(k, 1)))
            yield f"{their_field.name}: row {row} is {our_array[row]}, expected {their_array[row]}"


def one_array(column):
    return pa.concat_arrays(column.chunks) if column.num_chunks > 0 else pa.array([], column.type)


def is_same(ours, theirs):
    """Whether the values are the same, floats bit for bit; what lies under a null does not count."""
    ours, theirs = storage(ours), storage(theirs)
    if len(ours) != len(theirs) or not ours.is_valid().equals(theirs.is_valid()):
        return False
    if pa.types.is_struct(ours.type):
        ours, theirs = ours.drop_null(), theirs.drop_null()
        return all(is_same(ours.field(k), theirs.field(k)) for k in range(ours.type.num_fields))
    if pa.types.is_map(ours.type) or is_list(ours.type):
        return lengths(ours).equals(lengths(theirs)) and is_same(ours.drop_null().flatten(), theirs.drop_null().flatten())
    if not pa.types.is_floating(ours.type):
        return ours.equals(theirs if theirs.type == ours.type else theirs.cast(ours.type))
    width = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[ours.type.bit_width]
    return ours.view(width).equals(theirs.view(width))


def lengths(array):
    return pc.list_value_length(array).cast(pa.int64())


def storage(array):
    """A map as the list of pairs that it is, and what is not a type of Parquet's own as the type that is stored."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    type = array.type
    if pa.types.is_duration(type):
        return array.view(pa.int64())
    if pa.types.is_map(type):
        pair = pa.struct([pa.field("key", type.key_type, nullable=False), pa.field("value", type.item_type)])
        return array.cast(pa.list_(pa.field("pair", pair, nullable=False)))
    return array


# What pyarrow refuses although its writers meant it: differences of more than 32 bits between 32-bit values (DuckDB),
# and the decimal 0 in no bytes (hyparquet-writer).
REFUSED = ("delta bit width larger than integer bit width", "InitBlock EOF", "FromBigEndian was 0")


def main():
    folder = sys.argv[1]
    equal = failed = refused = 0
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".parquet"):
            continue
        path = os.path.join(folder, name)
        try:
            file = pq.ParquetFile(path)
            int96 = {column.name for column in file.schema if column.physical_type == "INT96"}
            theirs = file.read()
        except (OSError, pa.ArrowException) as error:
            if not any(reason in str(error) for reason in REFUSED):
                raise
            refused += 1
            continue
        with pa.OSFile(f"{path}.arrows") as file:
            found = list(differences(theirs, pa.ipc.open_stream(file).read_all(), int96))
        if found:
            failed += 1
            print(f"{name}: " + "\n  ".join(found))
        equal += not found
    if failed:
        sys.exit(f"{failed} of {equal + failed} files differ")
    print(json.dumps({"equal": equal, "refused": refused}))


if __name__ == "__main__":
    main()
