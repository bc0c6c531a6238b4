”
"serve
F
graph/INPUT0Placeholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
F
graph/INPUT1Placeholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
;
graph/OUTPUT0AddV2graph/INPUT0graph/INPUT1*
T0
9
graph/OUTPUT1Subgraph/INPUT0graph/INPUT1*
T0"ª*ø
serving_defaultä
/
INPUT0%
graph/INPUT0:0ÿÿÿÿÿÿÿÿÿ
/
INPUT1%
graph/INPUT1:0ÿÿÿÿÿÿÿÿÿ1
OUTPUT0&
graph/OUTPUT0:0ÿÿÿÿÿÿÿÿÿ1
OUTPUT1&
graph/OUTPUT1:0ÿÿÿÿÿÿÿÿÿtensorflow/serving/predict