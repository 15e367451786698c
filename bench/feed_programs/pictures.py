"""Loaders of JPEGs in a tar: a random part of each, 8 to 100 % of it, made 224 x 224, half of them turned left to right; bytes."""
import io
import math
import random

import numpy

SIDE = 224
BUFFER = 1000  # pictures that are shuffled together, packed


def path_of(options):
    return options["data"] + "/pictures.tar"


def none(options):
    x = numpy.zeros((options["batch"], SIDE, SIDE, 3), numpy.uint8)
    y = numpy.zeros(options["batch"], numpy.int64)
    while True:
        yield ((x, y) for _ in range(1000))


def ours(options):
    import antifreeze
    loader = antifreeze.Loader(path_of(options), batch=options["batch"], budget=options["budget"], seed=1, as_="numpy",
                               subset=options["subset"] and tuple(options["subset"]),
                               image={"height": SIDE, "width": SIDE, "is_random_crop": 1, "is_flipped": 1})
    options["note"]("window", samples=loader.group_samples, quality=loader.shuffle_quality)
    while True:
        yield loader


# ---- one picture ----

def part_of(width, height, draw=random):
    """Left, top, width and height, as torchvision's RandomResizedCrop draws them."""
    for _ in range(10):
        area, ratio = width * height * draw.uniform(.08, 1), math.exp(draw.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return draw.randint(0, width - w), draw.randint(0, height - h), w, h
    side = min(width, height)
    return (width - side) // 2, (height - side) // 2, side, side


def by_pillow(packed):
    import PIL.Image
    image = PIL.Image.open(io.BytesIO(packed) if isinstance(packed, bytes) else packed)
    x, y, w, h = part_of(*image.size)
    made = image.resize((SIDE, SIDE), PIL.Image.BILINEAR, box=(x, y, x + w, y + h))
    return numpy.asarray(made.transpose(PIL.Image.FLIP_LEFT_RIGHT) if random.random() < .5 else made)


def by_tensorflow(packed):
    import tensorflow
    shape = tensorflow.image.extract_jpeg_shape(packed)
    begin, size, _ = tensorflow.image.sample_distorted_bounding_box(shape, tensorflow.zeros([1, 0, 4]), area_range=(.08, 1.), max_attempts=10,
                                                                    use_image_if_no_bounding_boxes=True)
    window = tensorflow.stack([begin[0], begin[1], size[0], size[1]])
    made = tensorflow.image.decode_and_crop_jpeg(packed, window, channels=3, dct_method="INTEGER_FAST")
    made = tensorflow.image.resize(made, (SIDE, SIDE))
    return tensorflow.cast(tensorflow.image.random_flip_left_right(made), "uint8")


def by_spdl(packed):
    import spdl.io
    packets = spdl.io.demux_image(packed)
    x, y, w, h = part_of(packets.width, packets.height)
    flip = ",hflip" if random.random() < .5 else ""
    made = spdl.io.decode_packets(packets, filter_desc=f"crop={w}:{h}:{x}:{y},scale={SIDE}:{SIDE}:flags=bilinear{flip},format=pix_fmts=rgb24")
    return spdl.io.to_numpy(spdl.io.convert_frames(made))


# ---- many ----

def web_dataset(options):
    import webdataset
    made = webdataset.WebDataset(path_of(options), shardshuffle=False, empty_check=False, nodesplitter=None, workersplitter=every_nth)
    made = made.shuffle(BUFFER).to_tuple("jpg", "cls").map_tuple(by_pillow, int).batched(options["batch"])
    loader = webdataset.WebLoader(made, batch_size=None, num_workers=options["workers"])
    while True:
        yield ((numpy.asarray(x), numpy.asarray(y)) for x, y in loader)


def every_nth(shards):
    """There is one tar: all workers read it, as they would read their own of many, and what is told is the sum of both."""
    return shards


def tf_data(options):
    import tensorflow
    data = tensorflow.data
    kinds = (tensorflow.TensorSpec((), "string"), tensorflow.TensorSpec((), "int64"))
    made = data.Dataset.from_generator(lambda: packed_of(options), output_signature=kinds).shuffle(BUFFER)
    made = made.map(lambda packed, label: (by_tensorflow(packed), label), num_parallel_calls=2).batch(options["batch"]).prefetch(2)
    while True:
        yield made.as_numpy_iterator()


def packed_of(options):
    """What is in the tar, one behind the other."""
    import tarfile
    with tarfile.open(path_of(options), "r|", bufsize=1 << 20) as tar:
        for member in tar:
            if member.name.endswith(".jpg"):
                packed = tar.extractfile(member).read()
            else:
                yield packed, int(tar.extractfile(member).read())


def spdl(options):
    """Its threads decode, each with ffmpeg's decoder."""
    from spdl.pipeline import PipelineBuilder

    def shuffled():
        held, draw = [], random.Random(1)
        for pair in packed_of(options):
            held.append(pair)
            if len(held) > BUFFER:
                yield held.pop(draw.randrange(len(held)))
        yield from held

    def decoded(pair):
        return by_spdl(pair[0]), pair[1]

    def put_together(pairs):
        return numpy.stack([x for x, _ in pairs]), numpy.array([y for _, y in pairs])

    while True:
        yield running(PipelineBuilder().add_source(shuffled()).pipe(decoded, concurrency=2).aggregate(options["batch"]).pipe(put_together)
                      .add_sink(2).build(num_threads=3))


def running(pipeline):
    with pipeline.auto_stop():
        yield from pipeline


def hugging_face(options):
    import datasets
    datasets.disable_progress_bars()
    made = datasets.load_dataset("webdataset", data_files={"train": path_of(options)}, split="train", streaming=True)
    made = made.cast_column("jpg", datasets.Image(decode=False)).shuffle(seed=1, buffer_size=BUFFER)
    made = made.map(lambda row: {"x": by_pillow(row["jpg"]["bytes"]), "y": int(row["cls"])}, remove_columns=made.column_names)
    while True:
        yield ((numpy.stack(batch["x"]), numpy.asarray(batch["y"])) for batch in made.iter(options["batch"]))


LOADERS = {"none": none, "ours": ours, "web_dataset": web_dataset, "tf_data": tf_data, "spdl": spdl, "hugging_face": hugging_face}
