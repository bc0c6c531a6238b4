/* Stands for the library of the host when a backend is linked: only its name is used. */
typedef int not_empty;
