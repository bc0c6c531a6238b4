Æ
"serveó
9
graph/INPUT0Placeholder*
dtype0*
shape:
9
graph/INPUT1Placeholder*
dtype0*
shape:
;
graph/OUTPUT0AddV2graph/INPUT0graph/INPUT1*
T0
9
graph/OUTPUT1Subgraph/INPUT0graph/INPUT1*
T0"ª*Ä
serving_default°
"
INPUT0
graph/INPUT0:0
"
INPUT1
graph/INPUT1:0$
OUTPUT0
graph/OUTPUT0:0$
OUTPUT1
graph/OUTPUT1:0tensorflow/serving/predict