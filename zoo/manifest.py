"""All rows of the zoo. A program is added by its file and a row in the list of its kind."""
import rows_causes
import rows_tensorflow
import rows_torch
import rows_trainer

ROWS = rows_torch.ROWS + rows_tensorflow.ROWS + rows_causes.ROWS + rows_trainer.ROWS
