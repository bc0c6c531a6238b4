”
"serve{
B
graph/INPUT0Placeholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
0
graph/OUTPUT0Identitygraph/INPUT0*
T0"ª*‹
serving_defaultx
+
INPUT0!
graph/INPUT0:0ÿÿÿÿÿÿÿÿÿ-
OUTPUT0"
graph/OUTPUT0:0ÿÿÿÿÿÿÿÿÿtensorflow/serving/predict