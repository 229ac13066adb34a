"""Names that the modules do not have."""

import tedsl
from tedsl import te, tir, topi
from tedsl.tir import transform

tedsl.biuld  # error: attr-defined
te.placehoder  # error: attr-defined
tir.Selekt  # error: attr-defined
topi.softmaxx  # error: attr-defined
topi.nn.softmax
transform.Simplyfy  # error: attr-defined
tedsl.arith.Analyser  # error: attr-defined
tedsl.runtime.NDarray  # error: attr-defined
tedsl.nd.arry  # error: attr-defined
tedsl.ir.IRModul  # error: attr-defined
