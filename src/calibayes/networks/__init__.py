"""The networks of the paper's experiments, and small ones to start with; any other ``nn.Module`` will do as well."""

from __future__ import annotations

from calibayes.networks.input_dropout import InputDropout
from calibayes.networks.mlp import MLP
from calibayes.networks.normalize import CIFAR10, IMAGENET, Normalize
from calibayes.networks.pretrained_weights import load_weights
from calibayes.networks.resnet import ResNet, resnet18
from calibayes.networks.resnet_cifar import ResNetCIFAR, resnet20
from calibayes.networks.small_cnn import SmallCNN
from calibayes.networks.text_cnn import TextCNN
from calibayes.networks.word_bag import WordBag

__all__ = [
    "CIFAR10",
    "IMAGENET",
    "MLP",
    "InputDropout",
    "Normalize",
    "ResNet",
    "ResNetCIFAR",
    "SmallCNN",
    "TextCNN",
    "WordBag",
    "load_weights",
    "resnet18",
    "resnet20",
]
