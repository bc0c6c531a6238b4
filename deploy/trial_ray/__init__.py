"""Parts of try_ray.py."""
