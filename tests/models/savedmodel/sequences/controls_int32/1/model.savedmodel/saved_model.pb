Ä
"serveÇ
E
graph/INPUTPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
E
graph/STARTPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
E
graph/READYPlaceholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
5
	graph/sumAddV2graph/INPUTgraph/START*
T0
4
graph/OUTPUTMul	graph/sumgraph/READY*
T0"ª*î
serving_defaultÚ
-
INPUT$
graph/INPUT:0ÿÿÿÿÿÿÿÿÿ
-
READY$
graph/READY:0ÿÿÿÿÿÿÿÿÿ
-
START$
graph/START:0ÿÿÿÿÿÿÿÿÿ/
OUTPUT%
graph/OUTPUT:0ÿÿÿÿÿÿÿÿÿtensorflow/serving/predict