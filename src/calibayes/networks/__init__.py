"""The networks of the paper's experiments, and small ones to start with; any other ``nn.Module`` works as well."""

from calibayes.networks.input_dropout import InputDropout as InputDropout
from calibayes.networks.mlp import MLP as MLP
from calibayes.networks.normalize import CIFAR10 as CIFAR10
from calibayes.networks.normalize import IMAGENET as IMAGENET
from calibayes.networks.normalize import Normalize as Normalize
from calibayes.networks.pretrained_weights import load_weights as load_weights
from calibayes.networks.resnet import ResNet as ResNet
from calibayes.networks.resnet import resnet18 as resnet18
from calibayes.networks.resnet_cifar import ResNetCIFAR as ResNetCIFAR
from calibayes.networks.resnet_cifar import resnet20 as resnet20
from calibayes.networks.small_cnn import SmallCNN as SmallCNN
from calibayes.networks.text_cnn import TextCNN as TextCNN
from calibayes.networks.word_bag import WordBag as WordBag
