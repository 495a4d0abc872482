"""Data that are worse than those a classifier has learnt: corrupted images, garbled texts, shifted tables."""

from calibayes.data.corrupt.image_corruptions import CORRUPTIONS as CORRUPTIONS
from calibayes.data.corrupt.image_corruptions import corrupt_images as corrupt_images
from calibayes.data.corrupt.severity import SEVERITIES as SEVERITIES
from calibayes.data.corrupt.table_shifts import TABLE_SHIFTS as TABLE_SHIFTS
from calibayes.data.corrupt.table_shifts import ShiftedTable as ShiftedTable
from calibayes.data.corrupt.table_shifts import shift_table as shift_table
from calibayes.data.corrupt.table_shifts import tilt_weights as tilt_weights
from calibayes.data.corrupt.text_corruptions import TEXT_CORRUPTIONS as TEXT_CORRUPTIONS
from calibayes.data.corrupt.text_corruptions import corrupt_texts as corrupt_texts
