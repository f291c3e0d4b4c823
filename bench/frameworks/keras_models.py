"""Keras models of the kinds that people deploy, small: rows of (name, function that makes the model and its inputs)."""
import keras
import numpy as np
from keras import layers as L

random = np.random.default_rng(0)


def floats(*shape):
    return random.standard_normal(shape).astype(np.float32)


def trained(model):
    """Weights as training leaves them: no zeros and ones where layers begin with them."""
    for variable in model.variables:
        if variable.dtype == "float32":
            value = np.array(variable)
            value = np.abs(value + 0.2 * floats(*value.shape)) + 0.3 if "variance" in variable.path else value + 0.2 * floats(*value.shape)
            variable.assign(value)
    return model


def cnn():
    return keras.Sequential([keras.Input((16, 16, 3)), L.Conv2D(8, 3, padding="same", activation="relu"), L.MaxPooling2D(),
                             L.Conv2D(12, 3, strides=2), L.ReLU(), L.GlobalAveragePooling2D(), L.Dense(4, activation="softmax")])


def separable():
    return keras.Sequential([keras.Input((16, 16, 3)), L.Conv2D(8, 3, padding="same", use_bias=False), L.BatchNormalization(),
                             L.Activation("swish"), L.SeparableConv2D(12, 3), L.BatchNormalization(), L.ReLU(6),
                             L.DepthwiseConv2D(3), L.Flatten(), L.Dense(4)])


def lstm():
    return keras.Sequential([keras.Input((9,), dtype="int32"), L.Embedding(30, 12), L.Bidirectional(L.LSTM(10, return_sequences=True)),
                             L.GRU(8), L.Dense(3)])


def attention():
    x = keras.Input((10, 16), name="tokens")
    y = L.LayerNormalization()(x + L.MultiHeadAttention(4, 4)(x, x))
    z = L.LayerNormalization()(y + L.Dense(16)(L.Dense(32, activation="silu")(y)))
    return keras.Model(x, {"sequence": z, "pooled": L.GlobalMaxPooling1D()(z)})


class Residual(keras.Model):
    """A model by subclassing, with an inner model that is called twice."""

    def __init__(self):
        super().__init__()
        self.inner = keras.Sequential([L.Dense(16, activation="tanh"), L.Dropout(0.5), L.Dense(16)])
        self.head = L.Dense(5)

    def call(self, x, training=False):
        x = x + self.inner(x, training=training)
        return self.head(x + self.inner(x, training=training))


def subclassed():
    model = Residual()
    model(floats(1, 16))
    return model


def unet():
    x = keras.Input((16, 16, 1))
    a = L.Conv2D(8, 3, padding="same", activation="relu")(x)
    b = L.Conv2D(16, 3, padding="same", activation="relu")(L.AveragePooling2D(2)(a))
    c = L.Concatenate()([L.Conv2DTranspose(8, 2, strides=2)(b), L.UpSampling2D(interpolation="bilinear")(b), a])
    return keras.Model(x, L.Conv2D(2, 1, activation="sigmoid")(c))


MODELS = [
    ("CNN", lambda: (trained(cnn()), floats(2, 16, 16, 3))),
    ("BatchNormalization, SeparableConv2D", lambda: (trained(separable()), floats(2, 16, 16, 3))),
    ("LSTM both directions, GRU", lambda: (trained(lstm()), random.integers(0, 30, (2, 9), dtype=np.int32))),
    ("MultiHeadAttention", lambda: (trained(attention()), floats(2, 10, 16))),
    ("subclassed, a block called twice", lambda: (trained(subclassed()), floats(2, 16))),
    ("U-Net", lambda: (trained(unet()), floats(1, 16, 16, 1))),
]
