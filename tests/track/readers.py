# SPDX-License-Identifier: Apache-2.0
"""Reads files of TensorBoard and W&B by their formats alone, strictly: any byte that is not as the
formats say is an error. The trackers' own readers stand in trusted_readers_test.py."""
import json
import struct
import zlib


def crc32c(data):
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def fields(data):
    """[(number, value)] of a protobuf message; lengths as bytes, the rest as numbers."""
    at, found = 0, []

    def varint():
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        tag = varint()
        kind, number = tag & 7, tag >> 3
        if kind == 0:
            found.append((number, varint()))
        elif kind == 1:
            found.append((number, struct.unpack_from("<d", data, at)[0]))
            at += 8
        elif kind == 2:
            length = varint()
            assert at + length <= len(data), "a field ends behind its message"
            found.append((number, data[at:at + length]))
            at += length
        else:
            assert kind == 5, f"wire type {kind}"
            found.append((number, struct.unpack_from("<f", data, at)[0]))
            at += 4
    return found


def one(message, number):
    values = [value for field, value in message if field == number]
    assert len(values) == 1, f"field {number} stands {len(values)} times"
    return values[0]


def tensorboard(path, check_sums=True):
    """[(tag, step, value, wall time)] of an event file."""
    data, at, points = path.read_bytes(), 0, []
    first = True
    while at < len(data):
        length, = struct.unpack_from("<Q", data, at)
        record = data[at + 12:at + 12 + length]
        assert len(record) == length, "the last record is torn"
        if check_sums:
            assert struct.unpack_from("<I", data, at + 8)[0] == masked(data[at:at + 8])
            assert struct.unpack_from("<I", data, at + 12 + length)[0] == masked(record)
        at += 16 + length
        event = fields(record)
        if first:
            assert one(event, 3) == b"brain.Event:2"
            first = False
            continue
        for _, value in fields(one(event, 5)):
            summary = fields(value)
            points.append((one(summary, 1).decode(), one(event, 2), one(summary, 2), one(event, 1)))
    return points


def wandb_records(path):
    """Messages of the file, as their bytes."""
    data = path.read_bytes()
    assert data[:7] == b":W&B\xe1\xbe\0", data[:7]
    at, record, records = 7, b"", []
    while at < len(data):
        left = 32768 - at % 32768
        if left < 7:
            assert data[at:at + left] == bytes(left)
            at += left
            continue
        crc, length, kind = struct.unpack_from("<IHB", data, at)
        chunk = data[at + 7:at + 7 + length]
        assert len(chunk) == length and length <= left - 7, "a chunk crosses its block"
        assert zlib.crc32(bytes([kind]) + chunk) == crc
        assert (kind in (1, 2)) == (record == b""), "a record begins inside of another"
        record += chunk
        at += 7 + length
        if kind in (1, 4):
            records.append(record)
            record = b""
    assert record == b"", "the last record is torn"
    return records


def wandb(path):
    """(rows as dicts, configuration, summary or None, exit code or None)."""
    rows, config, summary, end = [], {}, None, None
    for number, record in enumerate(map(fields, wandb_records(path)), 1):
        assert one(record, 1) == number, "records are numbered"
        kind, body = next((field, value) for field, value in record if field != 1)
        items = fields(body)
        if kind == 2:
            rows.append({one(fields(item), 1).decode(): json.loads(one(fields(item), 16))
                         for field, item in items if field == 1})
        elif kind == 17:
            config = {one(fields(item), 1).decode(): json.loads(one(fields(item), 16))
                      for _, item in fields(one(items, 4))}
        elif kind == 3:
            summary = {one(fields(item), 1).decode(): json.loads(one(fields(item), 16))
                       for _, item in items}
        elif kind == 18:
            end = one(items, 1)
        else:
            assert kind == 21, f"record of kind {kind}"
    return rows, config, summary, end
