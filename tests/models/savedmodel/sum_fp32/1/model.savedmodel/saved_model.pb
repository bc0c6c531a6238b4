’
"serveæ
O
graph/INPUT0Placeholder*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
8

graph/axisConst*
dtype0	*
valueB	R
T
graph/OUTPUT0Sumgraph/INPUT0
graph/axis*

Tidx0	*
T0*
	keep_dims("ª*
serving_default‰
8
INPUT0.
graph/INPUT0:0ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ1
OUTPUT0&
graph/OUTPUT0:0ÿÿÿÿÿÿÿÿÿtensorflow/serving/predict