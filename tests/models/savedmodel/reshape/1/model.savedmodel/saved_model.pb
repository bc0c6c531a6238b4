­
"serveŠ
F
graph/INPUT0Placeholder*
dtype0*
shape:ÿÿÿÿÿÿÿÿÿ
;
graph/OUTPUT0AddV2graph/INPUT0graph/INPUT0*
T0"ª*”
serving_default€
/
INPUT0%
graph/INPUT0:0ÿÿÿÿÿÿÿÿÿ1
OUTPUT0&
graph/OUTPUT0:0ÿÿÿÿÿÿÿÿÿtensorflow/serving/predict