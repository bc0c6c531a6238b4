•
"serveŠ
E
graph/INPUTPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
H
graph/STATE_INPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
>
graph/STATE_OUTAddV2graph/INPUTgraph/STATE_IN*
T0
2
graph/OUTPUTIdentitygraph/STATE_OUT*
T0"ª*ü
serving_defaultè
-
INPUT$
graph/INPUT:0ÿÿÿÿÿÿÿÿÿ
3
STATE_IN'
graph/STATE_IN:0ÿÿÿÿÿÿÿÿÿ/
OUTPUT%
graph/OUTPUT:0ÿÿÿÿÿÿÿÿÿ5
	STATE_OUT(
graph/STATE_OUT:0ÿÿÿÿÿÿÿÿÿtensorflow/serving/predict