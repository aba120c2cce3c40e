"""The entropy source is the real cipher: ChaCha20 against its published key streams.

The 16 words of a ChaCha state are 4 constants, 8 of key and 4 that hold the block counter and the
nonce. RFC 8439 splits these last 128 bits into 32 of counter and 96 of nonce, the original design
into 64 and 64. `randomgen` counts through all of them, so that a nonce is the upper part of a large
count, and it counts words of 32 bits, 16 to a block.
"""

import numpy as np
import pytest
from randomgen import ChaCha

from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.randomness import generator_from_key

ZERO = bytes(32)
ASCENDING = bytes(range(32))

# Key, RFC 8439 block counter, RFC 8439 nonce, key stream of that block.
RFC_8439 = {
    "2.3.2": (
        ASCENDING,
        1,
        "000000090000004a00000000",
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e",
    ),
    "A.1 #1": (
        ZERO,
        0,
        "000000000000000000000000",
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586",
    ),
    "A.1 #2": (
        ZERO,
        1,
        "000000000000000000000000",
        "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
        "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f",
    ),
    "A.1 #3": (
        bytes(31) + b"\x01",
        1,
        "000000000000000000000000",
        "3aeb5224ecf849929b9d828db1ced4dd832025e8018b8160b82284f3c949aa5a"
        "8eca00bbb4a73bdad192b5c42f73f2fd4e273644c8b36125a64addeb006c13a0",
    ),
    "A.1 #4": (
        b"\x00\xff" + bytes(30),
        2,
        "000000000000000000000000",
        "72d54dfbf12ec44b362692df94137f328fea8da73990265ec1bbbea1ae9af0ca"
        "13b25aa26cb4a648cb9b9d1be65b2c0924a66c54d545ec1b7374f4872e99f096",
    ),
    "A.1 #5": (
        ZERO,
        0,
        "000000000000000000000002",
        "c2c64d378cd536374ae204b9ef933fcd1a8b2288b3dfa49672ab765b54ee27c7"
        "8a970e0e955c14f3a88e741b97c286f75f8fc299e8148362fa198a39531bed6d",
    ),
}


def key_stream(key: bytes, block: int, length: int) -> bytes:
    source = ChaCha(key=np.frombuffer(key, dtype="<u8"), counter=16 * block, rounds=20)
    return source.random_raw(length // 8).astype("<u8").tobytes()


def reference_block(key: bytes, block: int) -> bytes:
    """Return one block of ChaCha20, written down from RFC 8439, section 2.3."""
    words = b"expand 32-byte k" + key + block.to_bytes(16, "little")
    start = [int.from_bytes(words[i : i + 4], "little") for i in range(0, 64, 4)]
    x = list(start)

    def quarter_round(a: int, b: int, c: int, d: int) -> None:
        for one, two, three, shift in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            x[one] = (x[one] + x[two]) & 0xFFFFFFFF
            x[three] ^= x[one]
            x[three] = (x[three] << shift | x[three] >> (32 - shift)) & 0xFFFFFFFF

    for _ in range(10):
        for i in range(4):
            quarter_round(i, i + 4, i + 8, i + 12)
        for i in range(4):
            quarter_round(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return b"".join(
        ((a + b) & 0xFFFFFFFF).to_bytes(4, "little") for a, b in zip(x, start, strict=True)
    )


@pytest.mark.parametrize("name", RFC_8439)
def test_published_key_stream(name: str) -> None:
    key, low, nonce, expected = RFC_8439[name]
    block = low | int.from_bytes(bytes.fromhex(nonce), "little") << 32
    assert reference_block(key, block).hex() == expected
    assert key_stream(key, block, 64).hex() == expected


@pytest.mark.parametrize("start", [0, 2**32 - 2, 2**64 - 2], ids=["0", "2^32-2", "2^64-2"])
def test_blocks_follow_each_other_across_carries(start: int) -> None:
    key = bytes.fromhex("c46ec1b18ce8a878725a37e780dfb7351f68ed2e194c79fbc6aebee1a667975d")
    blocks = b"".join(reference_block(key, start + i) for i in range(40))
    assert key_stream(key, start, len(blocks)) == blocks


@pytest.mark.parametrize("key", [ZERO, ASCENDING, bytes(range(255, 223, -1))])
def test_product_generator_reads_this_key_stream_from_its_start(key: bytes) -> None:
    source = generator_from_key(key).bit_generator
    drawn = source.random_raw(24).astype("<u8").tobytes()
    assert drawn == b"".join(reference_block(key, i) for i in range(3))


def test_floats_are_made_of_the_stream_in_order() -> None:
    words = np.frombuffer(reference_block(ASCENDING, 0), dtype="<u8")
    uniform = generator_from_key(ASCENDING).random(8)
    np.testing.assert_array_equal(uniform, (words >> np.uint64(11)) * 2.0**-53)


@pytest.mark.parametrize("length", [0, 16, 31, 33])
def test_key_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(InvalidValueError, match=f"key_length={length}"):
        generator_from_key(bytes(length))
