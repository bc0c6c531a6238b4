½
"serveˆ
O
graph/INPUT0Placeholder*
dtype0*%
shape:ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ
0
graph/OUTPUT0Identitygraph/INPUT0*
T0"ª*¦
serving_default’
8
INPUT0.
graph/INPUT0:0ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿ:
OUTPUT0/
graph/OUTPUT0:0ÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿÿtensorflow/serving/predict