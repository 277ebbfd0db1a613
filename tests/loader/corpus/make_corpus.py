#!/usr/bin/env python3
"""Generates the corpus of broken and odd files, and outcomes.json: what the loader's decoders must make of each.

Both are committed, because encoders change; run this to add a kind of file, and look at the diff. For a picture that
decodes, outcomes.json has the size, the orientation, the mean of each channel and a few pixels, as from Pillow's
convert("RGB"); for the others it has the error's code and words of its text.

Needs NumPy, Pillow >= 11 and jpegtran (libjpeg-turbo-progs).    make_corpus.py [DIRECTORY]
"""

from __future__ import annotations

import json
import struct
import sys
import zlib
from pathlib import Path

import numpy as np
from pieces import (
    HEIGHT,
    WIDTH,
    as_rgb,
    changed,
    chunk,
    chunk_at,
    decoded,
    encode,
    frame_size,
    header,
    in_three_scans,
    jpegtran,
    npy,
    npy_text,
    photo,
    png,
    raw_png,
    restart_markers,
    riff,
    riff_chunk,
    rows_of,
    scan_begin,
    segment,
    u24,
    vp8x,
    with_exif,
    without,
)
from PIL import Image

SAMPLES = [(0, 0), (47, 0), (0, 31), (47, 31), (17, 9), (30, 22)]  # the corners, and two inside

HERE = Path(__file__).resolve().parent


class Corpus:
    def __init__(self, directory: Path) -> None:
        self.files = directory / "files"
        self.files.mkdir(parents=True, exist_ok=True)
        for old in self.files.iterdir():
            old.unlink()
        self.outcomes: dict[str, dict] = {}

    def write(self, name: str, data: bytes, outcome: dict) -> None:
        assert name not in self.outcomes and len(data) < 20_000, (name, len(data))
        (self.files / name).write_bytes(data)
        self.outcomes[name] = outcome

    def good(self, name: str, data: bytes, pixels: np.ndarray | None = None, orientation: int = 1) -> None:
        """`pixels`: for files that Pillow refuses or reads differently."""
        if pixels is None:
            pixels = decoded(data)
        height, width = pixels.shape[:2]
        at = [(min(x, width - 1), min(y, height - 1)) for x, y in SAMPLES]
        self.write(
            name,
            data,
            {
                "size": [width, height],
                "orientation": orientation,
                "mean": [round(float(v), 2) for v in pixels.reshape(-1, 3).mean(0)],
                "pixels": [[x, y, *map(int, pixels[y, x])] for x, y in sorted(set(at))],
            },
        )

    def corrupt(self, name: str, data: bytes, says: str) -> None:
        self.write(name, data, {"error": "corrupt", "says": says})

    def unsupported(self, name: str, data: bytes, says: str) -> None:
        self.write(name, data, {"error": "unsupported", "says": says})

    def array(self, name: str, data: bytes, array: np.ndarray) -> None:
        self.write(name, data, {"dtype": str(array.dtype), "shape": list(array.shape), "data": array.tobytes().hex()})


def add_odd_jpegs(corpus: Corpus) -> None:
    picture = photo()
    plain = encode(picture)
    corpus.good("plain.jpg", plain)
    corpus.good("larger.jpg", encode(photo(151, 113)))  # libjpeg-turbo has a faster path above 3 KB of data
    corpus.good("chroma_444.jpg", encode(picture, subsampling=0))
    corpus.good("chroma_422.jpg", encode(picture, subsampling=1))
    corpus.good("progressive.jpg", encode(picture, progressive=True))
    corpus.good("one_pixel.jpg", encode(picture[:1, :1]))
    corpus.good("gray.jpg", encode(Image.fromarray(picture).convert("L")))
    cmyk = encode(Image.fromarray(picture).convert("CMYK"))
    corpus.good("cmyk.jpg", cmyk)
    adobe = segment(cmyk, 0xEE)
    corpus.good("ycck.jpg", changed(cmyk, adobe[1] - 1, b"\x02"))
    corpus.good("cmyk_without_adobe_mark.jpg", without(cmyk, 0xEE))
    corpus.good("stored_as_rgb.jpg", encode(picture, keep_rgb=True))
    corpus.good("arithmetic.jpg", jpegtran(plain, "-arithmetic"), decoded(plain))
    corpus.good("restarts.jpg", encode(picture, restart_marker_blocks=2))
    corpus.good("no_end_marker.jpg", plain[:-2], decoded(plain))
    progressive = encode(picture, progressive=True)
    corpus.good("progressive_no_end_marker.jpg", progressive[:-2], decoded(progressive))
    corpus.good("no_huffman_tables_as_motion_jpeg.jpg", without(plain, 0xC4), decoded(plain))
    corpus.good("trailing_garbage.jpg", plain + b"garbage " * 40)
    corpus.good("padded_with_zeros.jpg", plain + bytes(2000))
    corpus.good("padding_before_end.jpg", plain[:-2] + b"\0\0\0" + plain[-2:])
    corpus.good("jpeg_named.png", plain)
    second = Image.fromarray(255 - picture)
    corpus.good("two_pictures_mpo.jpg", encode(picture, "MPO", save_all=True, append_images=[second], quality=90))
    small = encode(picture[:16, :24])
    for orientation in range(1, 9):
        order = "<" if orientation % 2 else ">"
        corpus.good(f"exif_{orientation}.jpg", with_exif(orientation, small, order), orientation=orientation)
    corpus.good("exif_of_9.jpg", with_exif(9, small))
    broken = with_exif(6, small)
    broken = changed(broken, broken.index(b"II*\0") + 4, b"\xff\xff\xff\x7f")
    corpus.good("exif_offset_outside.jpg", broken, decoded(small))


def add_broken_jpegs(corpus: Corpus) -> None:
    picture = photo()
    plain = encode(picture)
    scan = scan_begin(plain)
    middle = (scan + len(plain)) // 2
    corpus.corrupt("cut_in_header.jpg", plain[:100], "ends at byte 100, before its image data")
    corpus.corrupt("cut_before_scan.jpg", plain[: segment(plain, 0xDA)[0]], "before its image data")
    corpus.corrupt("cut_in_half.jpg", plain[:middle], f"ends at byte {middle}, within its image data")
    corpus.corrupt("cut_near_end.jpg", plain[:-40], "within its image data")
    corpus.corrupt("second_half_never_written.jpg", plain[:middle] + bytes(600 + len(plain)), "of the file are zeros")
    corpus.corrupt("cut_with_end_marker.jpg", plain[:middle] + b"\xff\xd9", "premature end")
    progressive = encode(picture, progressive=True)
    half = len(progressive) // 2
    corpus.corrupt("progressive_cut.jpg", progressive[:half], f"ends at byte {half}")
    last_scan = progressive.rindex(b"\xff\xda")
    corpus.corrupt("progressive_cut_between_scans.jpg", progressive[:last_scan], f"ends at byte {last_scan}")
    arithmetic = jpegtran(plain, "-arithmetic")
    corpus.corrupt("arithmetic_cut.jpg", arithmetic[: len(arithmetic) // 2], "ends at byte")
    one_each = in_three_scans(plain)
    third = one_each.rindex(b"\xff\xda")
    corpus.corrupt("colour_without_scan.jpg", one_each[:third] + b"\xff\xd9", "no scan")
    restarts = encode(picture, restart_marker_blocks=1)
    at = restart_markers(restarts)[1]
    corpus.corrupt("restart_marker_lost.jpg", restarts[:at] + restarts[at + 2 :], "near byte")
    corpus.corrupt("restart_marker_wrong.jpg", changed(restarts, at + 1, b"\xd6"), "instead of RST")
    next_at = restart_markers(restarts)[2]
    corpus.corrupt("restart_interval_lost.jpg", restarts[: at + 2] + restarts[next_at:], "near byte")
    corpus.corrupt("marker_in_data.jpg", changed(plain, middle, b"\xff\xc4"), "near byte")
    corpus.corrupt("no_quantization_tables.jpg", without(plain, 0xDB), "Quantization table")
    corpus.corrupt("huffman_table_overfull.jpg", changed(plain, segment(plain, 0xC4)[0] + 5, b"\xff" * 16), "header")
    corpus.corrupt("no_rows.jpg", frame_size(plain, WIDTH, 0), "Empty JPEG")
    corpus.corrupt("two_bytes.jpg", plain[:2], "ends after 2 bytes")
    corpus.corrupt("no_frame.jpg", without(plain, 0xC0), "SOS before SOF")
    corpus.unsupported("bomb.jpg", frame_size(plain, 60000, 60000), "60000 x 60000")
    corpus.unsupported("bomb_progressive.jpg", frame_size(progressive, 65500, 65500, 0xC2), "65500 x 65500")
    corpus.unsupported("larger_than_libjpeg.jpg", frame_size(plain, 65535, 65535), "65500 pixels")
    corpus.unsupported("twelve_bits.jpg", changed(plain, segment(plain, 0xC0)[0] + 4, b"\x0c"), "precision 12")
    corpus.unsupported("lossless.jpg", changed(plain, segment(plain, 0xC0)[0] + 1, b"\xc3"), "SOF type 0xc3")
    tiny = in_three_scans(encode(np.full((8, 8, 3), 77, np.uint8)))
    begin = tiny.rindex(b"\xff\xda")
    scans = tiny[:begin] + tiny[begin:-2] * 600 + b"\xff\xd9"
    corpus.unsupported("scan_bomb.jpg", scans, "more than 500 scans")


def add_odd_pngs(corpus: Corpus) -> None:
    picture = photo()
    gray = np.asarray(Image.fromarray(picture).convert("L"))
    alpha = np.linspace(0, 255, WIDTH * HEIGHT).reshape(HEIGHT, WIDTH).astype(np.uint8)
    corpus.good("rgb.png", png(picture, 8, 2))
    corpus.good("rgb_filtered.png", encode(picture, "PNG"))
    corpus.good("gray.png", png(gray, 8, 0))
    for depth in (1, 2, 4):
        low = gray >> (8 - depth)
        corpus.good(f"gray_{depth}_bit.png", png(low, depth, 0), as_rgb(low.astype(int) * 255 // (2**depth - 1)))
    wide = gray.astype(np.uint16) * 256 + np.arange(WIDTH, dtype=np.uint16) * 5
    corpus.good("gray_16_bit.png", png(wide, 16, 0), as_rgb(wide >> 8))
    rgb16 = picture.astype(np.uint16) * 256 + 200
    corpus.good("rgb_16_bit.png", png(rgb16, 16, 2), picture)
    corpus.good("rgba.png", png(np.dstack([picture, alpha]), 8, 6))
    corpus.good("rgba_16_bit.png", png(np.dstack([rgb16, alpha.astype(np.uint16) * 256]), 16, 6), picture)
    corpus.good("gray_alpha.png", png(np.dstack([gray, alpha]), 8, 4), as_rgb(gray))
    few = Image.fromarray(picture).quantize(16)
    indices = np.asarray(few)
    colours = few.getpalette()[:48]
    palette = chunk(b"PLTE", bytes(colours))
    corpus.good("palette.png", png(indices, 8, 3, palette))
    corpus.good("palette_4_bit.png", png(indices, 4, 3, palette))
    two = (gray > 128).astype(np.uint8)
    corpus.good("palette_1_bit.png", png(two, 1, 3, chunk(b"PLTE", bytes([9, 90, 200, 250, 240, 10]))))
    opaque = np.asarray(few.convert("RGB"))
    corpus.good("palette_transparent.png", png(indices, 8, 3, palette + chunk(b"tRNS", bytes(range(16)))), opaque)
    corpus.good("gray_transparent.png", png(gray, 8, 0, chunk(b"tRNS", struct.pack(">H", 100))), as_rgb(gray))
    corpus.good("rgb_transparent.png", png(picture, 8, 2, chunk(b"tRNS", struct.pack(">HHH", 1, 2, 3))), picture)
    corpus.good("interlaced.png", png(picture, 8, 2, interlaced=True))
    corpus.good("interlaced_palette_4_bit.png", png(indices, 4, 3, palette, interlaced=True))
    corpus.good("interlaced_gray_16_bit.png", png(wide, 16, 0, interlaced=True), as_rgb(wide >> 8))
    corpus.good("interlaced_one_pixel.png", png(picture[:1, :1], 8, 2, interlaced=True))
    corpus.good("many_data_chunks.png", png(picture, 8, 2, idats=40))
    plain = png(picture, 8, 2)
    corpus.good("no_end_chunk.png", plain[:-12], picture)
    corpus.good("trailing_garbage.png", plain + b"garbage " * 40)
    corpus.good("gamma_is_not_applied.png", png(picture, 8, 2, chunk(b"gAMA", struct.pack(">I", 200000))), picture)
    damaged_text = chunk(b"tEXt", b"Comment\0hello")[:-4] + b"\0\0\0\0"
    corpus.good("damaged_comment.png", png(picture, 8, 2, damaged_text), picture)
    bomb = chunk(b"zTXt", b"Comment\0\0" + zlib.compress(b"\0" * 8_000_000, 9))
    corpus.good("compressed_comment_bomb.png", png(picture[:4, :4], 8, 2, bomb), picture[:4, :4])
    tiff = with_exif(6, b"\xff\xd8")[2 + 4 + 6 :]
    corpus.good("exif_6.png", png(picture, 8, 2, chunk(b"eXIf", tiff)), picture, orientation=6)
    second = Image.fromarray(255 - picture)
    corpus.good("animated.png", encode(picture, "PNG", save_all=True, append_images=[second]), picture)


def add_broken_pngs(corpus: Corpus) -> None:
    picture = photo()
    plain = png(picture, 8, 2)
    data = chunk_at(plain, b"IDAT")
    indices = np.asarray(Image.fromarray(picture).quantize(16))
    corpus.corrupt("cut_in_magic.png", plain[:6], "ends after 6 bytes")
    corpus.corrupt("cut_in_header.png", plain[:20], "ends at byte 20")
    corpus.corrupt("cut_before_data.png", plain[:data], "before its image data")
    cut = data + 900
    corpus.corrupt("cut_in_data.png", plain[:cut], f"ends at byte {cut}, within its chunk IDAT at byte {data}")
    split = png(picture, 8, 2, idats=4)
    last = split.rindex(b"IDAT") - 4
    corpus.corrupt("cut_between_data_chunks.png", split[:last], f"ends at byte {last}, within its image data")
    corpus.corrupt("data_chunk_lost.png", split[:last] + chunk(b"IEND", b""), "near byte")
    flipped = changed(plain, data + 500, b"\x55\xaa\x55")
    corpus.corrupt("data_checksum.png", flipped, f"chunk IDAT at byte {data} is damaged")
    corpus.corrupt("header_checksum.png", changed(plain, 19, b"\x31"), "chunk IHDR at byte 8 is damaged")
    palette = png(indices, 8, 3, chunk(b"PLTE", bytes(48)))
    corpus.corrupt("palette_checksum.png", changed(palette, chunk_at(palette, b"PLTE") + 9, b"\x07"), "chunk PLTE")
    corpus.corrupt("no_palette.png", png(indices, 8, 3), "PLTE")
    five = chunk(b"PLTE", bytes(range(15)))
    corpus.corrupt("colour_outside_palette.png", png(indices, 8, 3, five), "in a palette of 5")
    rgb = header(WIDTH, HEIGHT, 8, 2)
    rows = rows_of(picture, 8)
    corpus.corrupt("too_few_rows.png", raw_png(rgb, rows[: len(rows) // 2]), "row 16 of 32")
    corpus.corrupt("data_is_not_compressed.png", raw_png(rgb, rows, compressed=False), "near byte")
    corpus.corrupt("unknown_filter.png", raw_png(rgb, b"\x09" + rows[1:]), "filter")
    corpus.corrupt("no_columns.png", raw_png(header(0, HEIGHT, 8, 2), b""), "0 x 32")
    corpus.corrupt("depth_of_3.png", raw_png(header(WIDTH, HEIGHT, 3, 2), rows), "near byte")
    corpus.corrupt("no_header.png", plain[:8] + plain[33:], "does not begin with its header")
    corpus.corrupt("transferred_as_text.png", plain.replace(b"\r\n", b"\n"), "text mode")
    corpus.unsupported("bomb.png", raw_png(header(50000, 50000, 8, 2), rows), "50000 x 50000")
    corpus.unsupported("bomb_of_one_bit.png", raw_png(header(2**31 - 1, 2**31 - 1, 1, 0), b"\0"), "2147483647")


def add_webps(corpus: Corpus) -> None:
    picture = photo()
    alpha = np.linspace(0, 255, WIDTH * HEIGHT).reshape(HEIGHT, WIDTH).astype(np.uint8)
    rgba = np.dstack([picture, alpha])
    lossy, lossless = encode(picture, "WEBP", quality=85), encode(picture, "WEBP", lossless=True)
    corpus.good("lossy.webp", lossy)
    corpus.good("lossless.webp", lossless)
    corpus.good("lossy_alpha.webp", encode(rgba, "WEBP", quality=85))
    corpus.good("lossless_alpha.webp", encode(rgba, "WEBP", lossless=True, exact=True))
    second = Image.fromarray(255 - picture)
    animated = encode(picture, "WEBP", save_all=True, append_images=[second], duration=100, quality=85)
    corpus.good("animated.webp", animated)
    frame = encode(picture[:16, :24], "WEBP", lossless=True)[12:]
    position = u24(8 // 2) + u24(4 // 2) + u24(24 - 1) + u24(16 - 1) + u24(100) + b"\0"
    loop = riff_chunk(b"ANIM", b"\0" * 6)
    canvas = np.zeros_like(picture)
    canvas[4:20, 8:32] = picture[:16, :24]
    small = riff(vp8x(2, WIDTH, HEIGHT) + loop + riff_chunk(b"ANMF", position + frame))
    corpus.good("animated_small_frame.webp", small, canvas)
    tiff = with_exif(8, b"\xff\xd8")[2 + 4 + 6 :]
    corpus.good("exif_8.webp", encode(picture, "WEBP", quality=85, exif=tiff), orientation=8)
    corpus.good("trailing_garbage.webp", lossy + b"garbage " * 40)
    corpus.corrupt("cut_in_header.webp", lossy[:20], "ends at byte 20")
    corpus.corrupt("cut_in_half.webp", lossy[: len(lossy) // 2], f"ends at byte {len(lossy) // 2} of the {len(lossy)}")
    unwritten = changed(riff(lossy[12:] + bytes(2000)), len(lossy) // 2, bytes(len(lossy) - len(lossy) // 2))
    corpus.corrupt("second_half_never_written.webp", unwritten, "of the file are zeros")
    corpus.corrupt("lossless_cut.webp", lossless[:-200], "ends at byte")
    short = riff(riff_chunk(lossy[12:16], lossy[20 : 20 + 300]))
    corpus.corrupt("data_cut_container_whole.webp", short, "WebP")
    corpus.corrupt("animated_cut.webp", animated[:400], "ends at byte 400")
    corpus.corrupt("animated_without_frames.webp", riff(vp8x(2, WIDTH, HEIGHT) + loop), "no frame")
    outside = changed(small, small.index(b"ANMF") + 8, u24(40 // 2))
    corpus.corrupt("animated_frame_outside.webp", outside, "not match its canvas")
    corpus.corrupt("damaged_start_code.webp", changed(lossy, lossy.index(b"\x9d\x01\x2a"), b"\0\0\0"), "damaged")
    corpus.unsupported("bomb.webp", riff(vp8x(2, 2**24, 2**7) + loop), "16777216 x 128")
    large = b"\x2f" + struct.pack("<I", 16383 | 16383 << 14)
    corpus.unsupported("bomb_lossless.webp", riff(riff_chunk(b"VP8L", large + lossless[25:])), "16384 x 16384")


def add_others(corpus: Corpus) -> None:
    picture = photo()
    corpus.corrupt("empty.jpg", b"", "0 bytes")
    corpus.corrupt("text.jpg", b"This is not a picture, whatever its name says.\n", "This is ")
    corpus.corrupt("zeros.jpg", bytes(4096), "00 00 00 00")
    corpus.unsupported("web_page.jpg", b"<!DOCTYPE html>\n<title>404 Not Found</title>\n", "web page")
    corpus.unsupported("picture.gif", encode(Image.fromarray(picture).quantize(16), "GIF"), "GIF")
    corpus.unsupported("gif_named.jpg", encode(Image.fromarray(picture).quantize(4), "GIF"), "GIF")
    corpus.unsupported("picture.bmp", encode(picture, "BMP"), "BMP")
    corpus.unsupported("picture.tiff", encode(picture[:8, :8], "TIFF"), "TIFF")
    corpus.unsupported("picture.avif", encode(picture, "AVIF"), "AVIF")
    corpus.unsupported("picture.jp2", encode(picture, "JPEG2000"), "JPEG 2000")
    corpus.unsupported("picture.heic", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "HEIC")
    corpus.unsupported("picture.jxl", b"\0\0\0\x0cJXL \r\n\x87\n", "JPEG XL")
    corpus.unsupported("sound.webp", b"RIFF\x24\0\0\0WAVEfmt ", "WAV")
    corpus.unsupported("array_named.jpg", npy(np.zeros(3, "f4")), ".npy array")


def add_arrays(corpus: Corpus) -> None:
    numbers = np.arange(6).reshape(2, 3)
    for kind in ("uint8", "int8", "int16", "uint16", "int32", "int64", "float16", "float32", "float64", "bool"):
        corpus.array(f"{kind}.npy", npy(numbers.astype(kind)), numbers.astype(kind))
    corpus.array("version_2.npy", npy(numbers.astype("f4"), (2, 0)), numbers.astype("f4"))
    corpus.array("version_3.npy", npy(numbers.astype("f4"), (3, 0)), numbers.astype("f4"))
    corpus.array("scalar.npy", npy(np.array(7, "i4")), np.array(7, "i4"))
    corpus.array("no_elements.npy", npy(np.zeros((0, 3), "f4")), np.zeros((0, 3), "f4"))
    corpus.array("trailing_garbage.npy", npy(numbers) + b"garbage", numbers)
    python2 = "{'descr': '<i4', 'fortran_order': False, 'shape': (2L, 3L), }"
    corpus.array("written_by_python_2.npy", npy_text(python2), np.zeros((2, 3), "i4"))
    other_order = '{"shape": (6,), "fortran_order": True, "descr": "<i4"}'
    corpus.array("keys_in_other_order.npy", npy_text(other_order), np.zeros(6, "i4"))

    plain = npy(numbers.astype("f4"))
    corpus.corrupt("empty.npy", b"", "0 bytes")
    corpus.corrupt("wrong_magic.npy", b"\x93NUMPI" + plain[6:], "not a .npy file")
    corpus.corrupt("cut_in_magic.npy", plain[:7], "ends at byte 7, within its header")
    corpus.corrupt("cut_in_header.npy", plain[:60], "ends at byte 60, within its header")
    corpus.corrupt("cut_in_data.npy", plain[:-4], "needs 24 bytes of data, but it has 20")
    corpus.corrupt("header_length_wrong.npy", changed(plain, 8, b"\xff\xff"), "65535 bytes")
    text = "{'descr': '<f4', 'fortran_order': False, 'shape': %s}"
    corpus.corrupt("negative_size.npy", npy_text(text % "(-1, 3)"), "a shape")
    corpus.corrupt("size_beyond_63_bits.npy", npy_text(text % "(99999999999999999999,)"), "a shape")
    corpus.corrupt("product_beyond_63_bits.npy", npy_text(text % "(4294967296, 4294967296)"), "more than 2^63")
    corpus.corrupt("too_many_dimensions.npy", npy_text(text % f"({'1, ' * 65})"), "at most 64")
    corpus.corrupt("shape_not_closed.npy", npy_text(text % "(2, 3"), "a shape")
    corpus.corrupt("no_shape.npy", npy_text("{'descr': '<f4', 'fortran_order': False}"), "lacks")
    corpus.corrupt("not_a_dictionary.npy", npy_text("[1, 2, 3]"), "{ expected")
    corpus.corrupt("code_in_header.npy", npy_text("{'descr': __import__('os'), }"), "the element type")
    corpus.unsupported("version_9.npy", b"\x93NUMPY\x09" + plain[7:], "version 9.0")
    corpus.unsupported("objects.npy", npy(np.array([None, "a"], object), allow_pickle=True), "Python objects")
    corpus.unsupported("fortran_order.npy", npy(np.asfortranarray(numbers)), "Fortran order")
    corpus.unsupported("big_endian.npy", npy(numbers.astype(">f4")), "big-endian")
    corpus.unsupported("strings.npy", npy(np.array(["ab", "c"])), "'<U2'")
    corpus.unsupported("records.npy", npy(np.zeros(2, [("x", "f4"), ("y", "i4")])), "records")
    corpus.unsupported("complex.npy", npy(np.zeros(2, "c8")), "'<c8'")
    corpus.unsupported("unsigned_32.npy", npy(np.zeros(2, "u4")), "'<u4'")


def main() -> None:
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    corpus = Corpus(directory)
    for add in (add_odd_jpegs, add_broken_jpegs, add_odd_pngs, add_broken_pngs, add_webps, add_others, add_arrays):
        add(corpus)
    lines = [f"  {json.dumps(name)}: {json.dumps(corpus.outcomes[name])}" for name in sorted(corpus.outcomes)]
    (directory / "outcomes.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    size = sum(f.stat().st_size for f in corpus.files.iterdir())
    print(f"{len(corpus.outcomes)} files, {size:,} bytes")


if __name__ == "__main__":
    main()
